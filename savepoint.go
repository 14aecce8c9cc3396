package oribi

import (
	"errors"
	"slices"

	"github.com/oribi-db/oribi/internal/keyindex"
)

// savepointBytes is about how much memory a savepoint takes, without what is replaced after it.
const savepointBytes = 256

// ErrSavepoint is returned by Tx.RollbackTo for a savepoint of another transaction, or for a savepoint that
// the transaction was rolled back past. Nothing has changed then.
var ErrSavepoint = errors.New("not a savepoint of the transaction, or one that it was rolled back past")

// Savepoint returns a savepoint: RollbackTo undoes the writes that come after it. Until the
// transaction ends, it takes memory, as do the operations that later writes replace. Errors:
// ErrTxEnded; ErrTransactionsFull and ErrBatchTooLarge, see Tx.
func (tx *Tx) Savepoint() (*Savepoint, error) {
	if tx.ended {
		return nil, callErr("", ErrTxEnded)
	}
	if err := tx.count(); err != nil {
		return nil, err
	}
	sp := &Savepoint{tx: tx, n: tx.batch.n, rows: tx.rows, bytes: tx.batch.bytes, undo: len(tx.undo)}
	for _, p := range tx.batch.tables {
		sp.tables = append(sp.tables, savedTable{p, len(p.ops), p.deleted})
	}
	tx.saved = append(tx.saved, sp)
	tx.savedBytes += savepointBytes
	return sp, nil
}

// RollbackTo undoes all writes since a savepoint, which can be used again; later savepoints cannot.
// What was read since then stays read: a change of it by another writer is a conflict. A running
// scan may or may not see the writes that are undone; the next move of a cursor does not. Errors: ErrSavepoint; ErrTxEnded.
func (tx *Tx) RollbackTo(sp *Savepoint) error {
	if tx.ended {
		return callErr("", ErrTxEnded)
	}
	at := slices.Index(tx.saved, sp)
	if at < 0 {
		return callErr("", ErrSavepoint)
	}
	for _, u := range slices.Backward(tx.undo[sp.undo:]) {
		u.ops.ops[u.i] = u.op
		u.ops.keep(u.ops.find(u.op.Key), nil)
		u.ops.touch(u.op.Key)
		tx.savedBytes -= replacedBytes(&u.op)
	}
	clear(tx.undo[sp.undo:])
	tx.undo = tx.undo[:sp.undo]
	for _, p := range tx.batch.tables {
		at := savedTable{}
		for _, t := range sp.tables {
			if t.ops == p {
				at = t
			}
		}
		for i := at.n; len(p.byIndex) > 0 && i < len(p.ops); i++ {
			p.touch(p.ops[i].Key)
		}
		p.truncate(at.n)
		p.deleted = at.deleted
		p.gaps = keyindex.Gaps{}
	}
	tx.batch.n, tx.rows, tx.batch.bytes = sp.n, sp.rows, sp.bytes
	tx.turns++
	tx.writes++
	tx.savedBytes -= savepointBytes * int64(len(tx.saved)-at-1)
	clear(tx.saved[at+1:])
	tx.saved, sp.replaced = tx.saved[:at+1], nil
	return nil
}
