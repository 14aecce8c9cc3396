package live

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Pushed is what Push has copied.
type Pushed struct {
	Table     string         // its name in the cluster
	Rows      int64          // that were sent by this call
	Timestamp mvcc.Timestamp // of the store's state that was copied
	Written   mvcc.Timestamp // see Status
}

// Push copies a table of a store, as it is at one time, into a table of a cluster. If the table of the
// cluster exists, rows of it whose keys the store's table has are replaced; others stay. A call that
// goes on after an interrupted one copies the same state as that one, and begins after the rows that
// have arrived. A call after a complete one sends what has changed since. A call after one that was killed
// later, or that lacks the history, makes the tables equal: it removes rows that the store's table does not
// have.
//
// Errors: ErrUnsupported for what Kudu cannot have, see Unsuitable, before anything is written;
// ErrOtherTable; ErrRefused; those of packages oribi and client; of the position's file. After an
// error the position is the last one that was saved.
func Push(ctx context.Context, s *oribi.Store, t *oribi.Table, to Target, o *Options) (Pushed, error) {
	w, err := newWriter(ctx, s, t, to, o)
	if err != nil {
		return Pushed{}, err
	}
	defer w.close()
	for again := true; again; {
		if err = w.bring(ctx, s); err == nil {
			w.pos.Open = false
			err = w.save(ctx)
		}
		if again, err = w.again(ctx, err); err != nil {
			return Pushed{}, err
		}
	}
	return Pushed{Table: w.target.Name, Rows: w.rows, Timestamp: w.pos.Done, Written: w.pos.Written}, nil
}

// bring brings the target to a state of the store: the state of the first copy, or a later one.
func (w *writer) bring(ctx context.Context, s *oribi.Store) error {
	w.stray()
	if w.pos.Copied {
		err := w.catchUp(ctx, s)
		if !errors.Is(err, oribi.ErrTooOld) {
			return err
		}
		w.o.Note(fmt.Sprintf("table %q no longer has the history since %d: copying all rows again", w.t.Name(), w.pos.Done))
		w.pos.Repair = true // what was deleted meanwhile is not known
		w.pos.Copied, w.pos.From, w.pos.Key = false, 0, ""
	}
	return w.copy(ctx, s)
}

// stray notes that the target may have rows that are later than the position. They are not in a list of
// changes from the position on if they have gone since, or have become again what they were.
func (w *writer) stray() {
	w.pos.Repair = w.pos.Repair || w.ahead && w.pos.Copied
	w.ahead = false
}

// catchUp sends how the rows that have changed since the position are now.
func (w *writer) catchUp(ctx context.Context, s *oribi.Store) error {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snap.Close()
	to := snap.Timestamp()
	if err := w.opened(); err != nil {
		return err
	}
	if to < w.pos.Done { // the store was restored from an older copy of it
		w.pos.Repair = true
	}
	if to > w.pos.Done {
		for d, err := range w.t.Diff(ctx, w.pos.Done, to) {
			if err != nil {
				return err
			}
			if err := w.change(ctx, &d, to); err != nil {
				return err
			}
		}
	}
	w.pos.Done, w.ahead = to, false
	if err := w.save(ctx); err != nil || !w.pos.Repair {
		return err
	}
	return w.repair(ctx, to)
}

// opened saves that rows are sent from now on.
func (w *writer) opened() error {
	if w.pos.Open {
		return nil
	}
	w.pos.Open = true
	return w.savePosition()
}

// copy makes the first copy, or goes on with it.
func (w *writer) copy(ctx context.Context, s *oribi.Store) error {
	snap, err := w.snapshot(ctx, s)
	if err != nil {
		return err
	}
	defer snap.Close()
	w.pos.From = snap.Timestamp()
	if err := w.opened(); err != nil {
		return err
	}
	encoder := keyenc.NewEncoder(w.t.Schema())
	scan := []oribi.ScanOption{oribi.At(snap)}
	if w.pos.Key != "" {
		after, err := keyOf(w.t.Schema(), w.pos.Key)
		if err != nil {
			return err
		}
		scan = append(scan, oribi.Above(after))
	}
	for b, err := range w.t.Scan(ctx, scan...).Batches() {
		if err != nil {
			return err
		}
		n := int64(b.Selection.Count())
		if n == 0 {
			continue
		}
		if err := w.put(ctx, b); err != nil {
			return err
		}
		w.rows += n
		if w.pending += n; w.pending >= int64(w.o.Rows) {
			w.pos.Key = hex.EncodeToString(lastKey(encoder, w.t.Schema().Keys, b))
			if err := w.save(ctx); err != nil {
				return err
			}
		}
	}
	w.pos.Copied, w.pos.Done, w.pos.Key = true, w.pos.From, ""
	if err := w.save(ctx); err != nil || !w.pos.Repair {
		return err
	}
	return w.repair(ctx, w.pos.Done)
}

// put sends the rows of a batch.
func (w *writer) put(ctx context.Context, b *batch.RecordBatch) error {
	if err := w.align(ctx, b.Schema); err != nil {
		return err
	}
	there := batch.RecordBatch{Len: b.Len, Selection: b.Selection}
	for i, at := range w.at {
		if at >= 0 {
			there.Schema = append(there.Schema, w.target.Schema.Columns[i])
			there.Columns = append(there.Columns, b.Columns[at])
		}
	}
	if w.replace {
		if err := w.session.ApplyBatch(ctx, client.DeleteIgnore, &there); err != nil {
			return err
		}
	}
	return w.session.ApplyBatch(ctx, client.Upsert, &there)
}

// snapshot returns the state of the first copy, or a new one if the table has dropped that.
func (w *writer) snapshot(ctx context.Context, s *oribi.Store) (*oribi.Snapshot, error) {
	if w.pos.From != 0 {
		snap, err := s.SnapshotAt(ctx, w.pos.From, oribi.KeepHistory())
		if err == nil && w.t.Properties().HistoryFloor <= w.pos.From {
			return snap, nil
		}
		if err == nil {
			snap.Close()
		} else if !errors.Is(err, oribi.ErrTooOld) {
			return nil, err
		}
		w.pos.From, w.pos.Key, w.pos.Repair = 0, "", true
	}
	return s.Snapshot(ctx, oribi.KeepHistory())
}

// keyOf returns an encoded key, in hex, as a Key.
func keyOf(s *schema.Schema, text string) (oribi.Key, error) {
	encoded, err := hex.DecodeString(text)
	var cells [][]byte
	if err == nil {
		cells, err = keyenc.NewEncoder(s).Decode(encoded)
	}
	if err != nil {
		return nil, fault.Corruptf("position of a copy: key %.40q: %v", text, err)
	}
	key := make(oribi.Key, len(cells))
	for i, cell := range cells {
		key[i] = bind.Value(&s.Columns[i], cell)
	}
	return key, nil
}

// lastKey returns the encoded key of the last selected row of b.
func lastKey(e *keyenc.Encoder, keys int, b *batch.RecordBatch) []byte {
	last := -1
	for i := range b.Rows() {
		last = i
	}
	cells := make([][]byte, keys)
	for i := range cells {
		cells[i] = b.Columns[i].Cell(last)
	}
	return e.AppendKey(nil, cells)
}
