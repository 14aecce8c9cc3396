package tablet

import (
	"bytes"
	"context"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// ruleChange is the change of a table's expiry rule by an Alter that has blocked writers.
//
// Rows that have expired by the old rule must not come back. So the rule is stopped, at the
// timestamp of an empty batch, and the rows that have expired by then are deleted by write batches
// that follow it; the new rule begins with the last of these:
//
//	log       ─── stop ─── deletes ─── deletes ───
//	rule      old │ old, of rows expired at stop │ new
//	published     └ with the metadata that says so
//
// A row that would expire between the two does not: no reader sees the table as of stop or later
// before the metadata commit. If that fails, the deletes are in the log, and the old rule remains in
// force. That is no change, because the rows that were deleted are absent by it.
type ruleChange struct {
	j       *job
	row     *meta.Table
	publish []func()
}

// purgeBytes limits the keys in a write batch of deletes.
const purgeBytes = 1 << 20

// changeRule gives the last entry of row.Expiry, which an Alter has added, its timestamp. The caller
// calls end when readers see row, or when the Alter has failed.
func (c *ruleChange) changeRule(ctx context.Context) error {
	t := c.j.t
	rules := c.row.Expiry[:len(c.row.Expiry)-1]
	added := c.row.Expiry[len(rules)]
	var rec record.Writer
	rec.Begin(0)
	stop, _, err := c.append(&rec)
	if err != nil {
		return err
	}
	from := stop
	if _, ok := rules.Current(); ok {
		if from, err = c.deleteExpired(ctx, stop); err != nil {
			return err
		}
	}
	if from != stop {
		rules = rules.StoppedAt(stop)
	}
	added.From = from
	c.row.Expiry = append(slices.Clip(rules), added)
	c.j.at = cutover{lsn: t.opts.Store.LastLSN(), snap: mvcc.AsOf(c.j.st.maxTimestamp()), auto: t.auto}
	return nil
}

// append appends a record to the log, durably. It becomes visible at end.
func (c *ruleChange) append(rec *record.Writer) (ts mvcc.Timestamp, at lsn.LSN, err error) {
	ts, at, publish, err := c.j.t.opts.Store.Append(rec, c.j.t.Number)
	if err == nil {
		c.publish = append(c.publish, publish)
	}
	return ts, at, err
}

// end makes what was appended visible.
func (c *ruleChange) end() {
	for _, publish := range c.publish {
		publish()
	}
}

// deleteExpired deletes the rows that are expired as of a timestamp, and returns the timestamp of
// the last write batch, or stop if there is no such row.
func (c *ruleChange) deleteExpired(ctx context.Context, stop mvcc.Timestamp) (last mvcc.Timestamp, err error) {
	v := View{TableSchema: c.j.st.schema, of: c.j.t, state: c.j.st}.asOf(mvcc.AsOf(stop))
	it, err := v.Ref().Scan(scan.Options{Filter: v.Gone(batch.Filter{}), Keys: true}, true)
	if err != nil {
		return 0, err
	}
	defer it.Close()
	last = stop
	var ops []Op
	size := 0
	for it.Next() {
		sel := it.Batch().Selection
		for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
			key := bytes.Clone(it.Keys()[i])
			ops = append(ops, Op{Kind: Purge, Index: len(ops), Key: key})
			size += len(key)
		}
		if size < purgeBytes {
			continue
		}
		if last, err = c.delete(ops); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		ops, size = nil, 0
	}
	if err = it.Close(); err == nil && len(ops) > 0 {
		last, err = c.delete(ops)
	}
	return last, err
}

// delete commits deletes of expired rows, with writers blocked.
func (c *ruleChange) delete(ops []Op) (mvcc.Timestamp, error) {
	w := writes.Get().(*Write)
	w.t, w.state, w.exclusive = c.j.t, c.j.st, true
	w.state.refs.Add(1)
	defer w.Release()
	if err := w.Resolve(ops, c.j.st.schema); err != nil {
		return 0, err
	}
	var rec record.Writer
	rec.Begin(0)
	w.Record(&rec)
	ts, at, err := c.append(&rec)
	if err == nil {
		w.Apply(ts, at)
	}
	return ts, err
}
