package oribi

import (
	"github.com/oribi-db/oribi/internal/keyindex"
	"github.com/oribi-db/oribi/internal/tablet"
)

// DeleteRange deletes the rows whose keys are not below from and below to, when the transaction is
// committed: also those that others add until then, which is no conflict. Each bound is given as in From,
// or is nil for no bound. From now on, the transaction sees no row of the range but those that it adds.
// Rows that it has inserted before, and whose keys Commit has yet to assign, stay.
//
// It takes about the same time for any number of rows. If rows of the table expire, or it has indexes, it deletes those that
// the transaction sees one by one.
//
// Errors: ErrRow for a bound that does not fit; ErrTransactionsFull; ErrBatchTooLarge, also of Commit if
// rows of the range are scattered among too many deleted ones; ErrTxEnded; those of a read.
func (tx *Tx) DeleteRange(t *Table, from, to any) error {
	if err := tx.ready(t); err != nil {
		return err
	}
	rows := tx.rows
	defer func() { tx.rows = rows }() // the range is no row of the caller
	if t.byRow() {
		return tx.deleteEach(t, from, to)
	}
	b := tx.batch
	p := b.opsOf(t)
	if p == nil {
		return b.Err()
	}
	lower, upper, err := t.keyRange(new(bounds), p.schema, &readOptions{lower: from, upper: to})
	if err != nil {
		return callErr("", err)
	}
	before, n, size := p.deleted, b.n, b.bytes
	p.deleted = before.With(lower, upper)
	b.n++
	b.bytes += p.deleted.Bytes() - before.Bytes()
	err = tx.add(t, func() { // deletes what it has written before
		for own := p.keysIn(lower, upper, false); own != nil && own.Key() != nil; own.Next() {
			op := tablet.Op{Kind: tablet.DeleteIgnore, Index: b.n, Key: own.Key()}
			p.ops = append(p.ops, op)
			b.n++
			b.bytes += opBytes(&op)
		}
	})
	if err != nil {
		p.deleted, b.n, b.bytes = before, n, size
		return err
	}
	p.gaps.Add(lower, upper)
	p.deleted = p.rangesWith(before, lower, upper)
	b.bytes += p.deleted.Bytes() - before.With(lower, upper).Bytes()
	return nil
}

// rangesWith returns the ranges before and a further one, without keys of rows on which there are
// operations that must meet the row: operands, of which there are results, and those that were accepted
// because it exists.
//
//	operations on b, d        b: update, delete      d: delete, in place of an upsert
//	delete [a, f)             [a, b) (b, f)
func (p *tableOps) rangesWith(before keyindex.Ranges, lower, upper []byte) keyindex.Ranges {
	var several [][]byte
	for own := p.keysIn(lower, upper, false); own != nil && own.Key() != nil; own.Next() {
		key := own.Key()
		if p.index.Before(p.index.Last(p.index.Find(key))) >= 0 && !before.Contain(key) {
			several = append(several, key)
		}
	}
	return before.With(lower, upper).Without(several)
}

// deleteEach deletes the rows of a range one by one.
func (tx *Tx) deleteEach(t *Table, from, to any) error {
	keys := t.Schema().Keys
	var names []string
	for _, c := range t.Schema().Columns[:keys] {
		names = append(names, c.Name)
	}
	for row, err := range tx.Scan(t, From(from), To(to), Columns(names...)).Rows() {
		if err == nil {
			err = tx.Row(OpDeleteIgnore, t, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
