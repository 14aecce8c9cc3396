package tablecmd

import (
	"errors"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

func TestFirstRowsTakeBoundedMemory(t *testing.T) {
	columns := []schema.Column{{Name: "s", Type: schema.String}}
	rows := func(first byte, n int) *batch.RecordBatch {
		b := batch.New(columns, n)
		for i := range n {
			b.Columns[0].SetCell(i, append([]byte{first - byte(i)}, make([]byte, 1000)...))
		}
		return b
	}
	f := firstRows{typ: schema.String, limit: 3, bytes: 3 * 2200}
	must.Do(t, errors.Join(f.add(rows(255, 100), 0, 1), f.add(rows(150, 100), 0, 1)))
	if got := f.sorted(); len(got) != 3 || got[0].by[0] != 51 || got[2].by[0] != 53 {
		t.Errorf("got %d rows, the first with %d", len(got), got[0].by[0])
	}
	f = firstRows{typ: schema.String, limit: 4, bytes: 3 * 2200}
	must.Contain(t, fmt.Sprint(f.add(rows(255, 100), 0, 1)), "lower --limit 4", "rows above the limit")
}
