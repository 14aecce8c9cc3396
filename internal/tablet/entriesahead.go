package tablet

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
)

// aheadEntry is the entry of the row that an operation inserts unless it is refused, and the position of the
// entry before the write batch. The zero value is none.
type aheadEntry struct {
	key []byte
	position
}

// lookAhead finds the entries of rows that operations may insert. Operations are decided one after the other,
// but entries are found several times as fast in the order of their keys, and by several goroutines.
func (x *indexWrites) lookAhead(w *Write) error {
	if len(w.ops) < groupKeys {
		return nil
	}
	for k := range x.parts {
		p := &x.parts[k]
		p.w.ops, p.w.targets = slices.Grow(p.w.ops, len(w.ops)), slices.Grow(p.w.targets, len(w.ops))
		if p.sparse {
			continue
		}
		p.w.ahead = slices.Grow(p.w.ahead, len(w.ops))[:len(w.ops)]
		p.apart = !p.Table.Index().Building
		some := false
		for i := range w.ops {
			op, at := &w.ops[i], &p.w.ahead[i]
			*at = aheadEntry{}
			p.apart = p.apart && (op.Kind.Deletes() || op.inserts() && (!op.upserts() || w.state.schema.Overwrites(op)))
			if !op.inserts() {
				continue
			}
			some = true
			x.after = x.cellsOf(x.after[:0], w.state.schema, op.Body)
			at.key = x.entry(p, op.Key, x.after)
			if p.Table.Index().Unique {
				if err := x.lock(p, at.key); err != nil {
					return err
				}
			}
		}
		if !some {
			p.w.ahead = p.w.ahead[:0]
		} else if err := p.findAhead(); err != nil {
			return err
		}
	}
	return nil
}

// inserts reports whether the row of op.Body may be the one after the operation.
func (op *Op) inserts() bool {
	switch op.Kind {
	case Insert, InsertIgnore, Upsert, UpsertIgnore:
		return op.Operands == nil
	}
	return false
}

// hasBody reports whether the row after an operation is that of its body.
func (to *target) hasBody() bool {
	return (to.kind == change.Insert || to.kind == change.Replace) && to.list == nil
}

// findAhead finds the entries of w.ahead.
func (p *indexPart) findAhead() error {
	w := p.w
	w.order = sortKeys(w.order[:0], len(w.ahead), func(i int) []byte { return w.ahead[i].key })
	for k := 1; k < len(w.order) && p.apart; k++ {
		key := w.ahead[w.order[k].op].key
		p.apart = key == nil || !bytes.Equal(w.ahead[w.order[k-1].op].key, key)
	}
	return eachGroup(len(w.order), func(from, to int) (err error) {
		for _, k := range w.order[from:to] {
			if e := &w.ahead[k.op]; e.key != nil {
				if e.position, err = p.w.find(bloom.MakeProbe(e.key)); err != nil {
					return p.errorf(err)
				}
			}
		}
		return nil
	})
}

// asAhead reports whether the operations are those that w.ahead expects, so that w.order is theirs.
func (w *Write) asAhead() bool {
	return slices.EqualFunc(w.ops, w.ahead, func(op Op, e aheadEntry) bool { return bytes.Equal(op.Key, e.key) })
}
