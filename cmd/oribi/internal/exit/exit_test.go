package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/apply"
	"github.com/oribi-db/oribi/internal/must"
)

func TestExitCodes(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("oribi: dir: %w", err) }
	line := func(err error) error { return &apply.LineError{Name: "f", Line: 3, Err: err} }
	row := func(err error) error { return &oribi.RowError{Table: "t", Cause: err} }
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{wrap(ErrReaderGone), 0},
		{errors.New("anything"), 1},
		{wrap(oribi.ErrExists), 1},
		{wrap(oribi.ErrTooOld), 1},
		{wrap(oribi.ErrUnsupported), 1},
		{wrap(oribi.ErrNoSpace), 1},
		{wrap(oribi.ErrPoisoned), 1},
		{wrap(oribi.ErrBatchTooLarge), 1},
		{wrap(fs.ErrNotExist), 1},
		{wrap(row(oribi.ErrKeyExists)), 1},
		{wrap(row(oribi.ErrNotFound)), 1},
		{line(oribi.ErrNotFound), 1},
		{line(row(oribi.ErrKeyExists)), 1},
		{line(oribi.ErrSchema), 1},
		{Usage(errors.New("anything")), 2},
		{Usage(wrap(oribi.ErrNotFound)), 2},
		{wrap(oribi.ErrFuture), 2},
		{wrap(oribi.ErrSchema), 2},
		{wrap(oribi.ErrCorrupt), 3},
		{line(wrap(oribi.ErrCorrupt)), 3},
		{wrap(oribi.ErrNotStore), 4},
		{wrap(oribi.ErrNotFound), 4},
		{wrap(oribi.ErrLocked), 5},
		{With(Refused, errors.New("add --yes")), 6},
		{wrap(context.Canceled), 130},
		{errors.Join(context.Canceled, oribi.ErrClosed), 130},
	} {
		must.Equal(t, Code(c.err), c.want, c.err)
	}
}

func TestMessageIsOneLine(t *testing.T) {
	err := fmt.Errorf("oribi: table %q: %w", "a  b", errors.Join(errors.New("x"), errors.New("y\r\nz")))
	must.Equal(t, Message(err, Failed), `table "a  b": x; y; z`)
}
