package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/schema"
)

// Masters do not know that a request repeats another one: an alteration whose answer was lost may be made
// twice, and late. So each one fails if it is made twice in a row, the position is open before the first,
// columns are known by their IDs, and the version of the target's schema is looked at again after rows
// were sent.

// alter gives the target the columns that the table has now, and begins a session.
func (w *writer) alter(ctx context.Context) error {
	if list := Unsuitable(w.t); list != nil {
		return unsupported("table %q can no longer be copied to Kudu: %s", w.t.Name(), list[0])
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	w.endSession()
	now := w.t.Schema()
	replaced, err := w.alterTarget(ctx, now)
	if err != nil {
		return err
	}
	if err := mismatch(now, w.target.Schema); err != nil {
		return fmt.Errorf("table %q of the cluster: %w", w.target.Name, err)
	}
	w.pos.Columns = pairs(now, w.target.Schema)
	w.pos.Repair = w.pos.Repair || replaced
	if err := w.savePosition(); err != nil {
		return err
	}
	w.given, w.from = now.Columns, nil
	w.replace = false
	for i := range now.Columns {
		w.replace = w.replace || w.target.Schema.Columns[w.target.Schema.Index(now.Columns[i].Name)].Immutable
	}
	w.session, err = w.target.NewSession(ctx, &w.o.Session)
	return err
}

// maxAlterations is how many alterations give a target the columns of a table. Each may be of unknown
// outcome, and of the renames that swap names each is one.
const maxAlterations = 1000

// alterTarget alters the target. replaced reports whether it has columns with other cells than those that
// were sent.
func (w *writer) alterTarget(ctx context.Context, now *schema.Schema) (replaced bool, err error) {
	for range maxAlterations {
		if w.version, err = w.target.SchemaVersion(ctx); err != nil {
			return false, err
		}
		if err := w.reopen(ctx); err != nil {
			return false, err
		}
		n := alteration(now, w.pos.Columns, w.target.Schema)
		replaced = replaced || n.adopted
		if len(n.steps) == 0 {
			return replaced, nil
		}
		if err := w.opened(); err != nil {
			return false, err
		}
		altered, err := w.cluster.AlterTable(ctx, w.target.Name, n.steps...)
		if err == nil {
			if n.adds {
				w.pos.Columns = pairs(now, altered.Schema)
			}
			continue
		}
		// Of unknown outcome, or an earlier request has arrived meanwhile.
		if version, failed := w.target.SchemaVersion(ctx); failed != nil || version == w.version {
			return false, err
		}
	}
	return false, fmt.Errorf("table %q of the cluster: after %d alterations it lacks columns", w.target.Name, maxAlterations)
}

// reopen reads the description of the target again.
func (w *writer) reopen(ctx context.Context) error {
	now, err := w.cluster.OpenTable(ctx, w.target.Name)
	if err != nil {
		return err
	}
	if now.ID != w.pos.Target {
		return w.otherTable(now)
	}
	w.target = now
	return nil
}

func (w *writer) otherTable(now *client.Table) error {
	return fmt.Errorf("table %q, whose ID is %s in cluster %s: %w: remove the position to begin anew",
		now.Name, now.ID, w.cluster.ID(), ErrOtherTable)
}

// settle waits until no request of a copy that was killed can arrive any more.
func (w *writer) settle(ctx context.Context) error {
	if !w.pos.Open {
		return nil
	}
	w.o.Note(fmt.Sprintf("the last copy of table %q did not end: waiting %v for its requests", w.t.Name(), w.o.Settle))
	w.ahead = true
	return pause(ctx, w.o.Settle)
}

// errAltered: the target is to be looked at again.
var errAltered = errors.New("the copy was altered by others")

// unaltered returns errAltered if the target has another schema than it was given.
func (w *writer) unaltered(ctx context.Context) error {
	version, err := w.target.SchemaVersion(ctx)
	if err == nil && version != w.version {
		err = fmt.Errorf("table %q of the cluster: %w", w.target.Name, errAltered)
	}
	return err
}

// again prepares for another bring after one that has ended with err. It reports whether that helps.
func (w *writer) again(ctx context.Context, err error) (bool, error) {
	switch {
	case errors.Is(err, oribi.ErrTooOld):
		return true, nil
	case !errors.Is(err, errAltered):
		return false, err
	}
	if w.pos.Repair = true; !w.pos.Copied { // what was sent may be gone
		w.pos.From, w.pos.Key = 0, ""
	}
	err = w.alter(ctx)
	return err == nil, err
}
