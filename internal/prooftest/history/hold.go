package history

import (
	"errors"
	"fmt"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
)

// hold opens a snapshot of a past state, advances the clock past the retention of history, rewrites
// a table in every way, and compares it as of the snapshot.
func (r *Runner) hold(st *script.Step) error {
	r.Counts.Reads++
	may := r.expect(&st.Read)
	sn, err := r.Store.SnapshotAt(r.ctx, st.Read.At)
	switch {
	case may&future != 0 && errors.Is(err, oribi.ErrFuture), may&tooOld != 0 && errors.Is(err, oribi.ErrTooOld):
		return nil
	case err != nil:
		return err
	}
	sn.SetName("held")
	defer sn.Close()
	if h := r.Script.Settings.History; h > 0 {
		r.Wall.move(h + time.Minute)
	}
	for _, kind := range []script.Kind{script.Flush, script.Major, script.Recompress, script.Compact, script.UndoGC} {
		if err := r.rewrite(&script.Step{Kind: kind, Table: st.Table}); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	sum, rows, err := model.ScanDigest(r.ctx, t, oribi.At(sn))
	switch {
	case may&tooOld != 0 && errors.Is(err, oribi.ErrTooOld):
		return nil // the history of this table begins later
	case err != nil:
		return err
	case sum != r.Model.Tables[st.Table].Digest(st.Read.At):
		return fmt.Errorf("the snapshot shows %d rows that differ from the state at its timestamp", rows)
	}
	r.Counts.Rows += rows
	return nil
}
