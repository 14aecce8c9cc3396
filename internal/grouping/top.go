package grouping

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/internal/aggregate"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/schema"
)

// best are the groups of a result with Top. Twice as many as wanted are kept before the others are
// dropped, so that a group takes little time.
type best struct {
	n     int   // groups wanted
	limit int64 // bytes of those that are kept; half of it is for those wanted

	keys  []schema.Type // of the engine's keys
	first schema.Type   // of the first aggregate
	list  []ranked
	bytes int64
	last  *ranked // at least n groups are not after it; nil if unknown
}

// ranked is a group with its place in the order of Top.
type ranked struct {
	first []byte   // the cell of the first aggregate
	key   [][]byte // the cells of the engine's key
	group Group
}

// size returns about how much memory a group takes.
func (r *ranked) size() int64 {
	const perGroup, perValue = 128, 64
	n := len(r.first) + perGroup + perValue*len(r.group.Values)
	for _, cell := range r.key {
		n += 2*len(cell) + perValue
	}
	return int64(n)
}

// compare orders groups by descending first aggregate, with NULLs last, then by key.
func (b *best) compare(x, y *ranked) int {
	order := 0
	if (x.first == nil) != (y.first == nil) {
		order = aggregate.Compare(b.first, x.first, y.first)
	} else {
		order = aggregate.Compare(b.first, y.first, x.first)
	}
	for i := 0; order == 0 && i < len(b.keys); i++ {
		order = aggregate.Compare(b.keys[i], x.key[i], y.key[i])
	}
	return order
}

// add keeps a group, and perhaps drops others.
func (b *best) add(r ranked) error {
	b.list = append(b.list, r)
	b.bytes += r.size()
	full := b.bytes > b.limit
	if full || len(b.list) >= 2*b.n {
		b.cut()
	}
	if full && b.bytes > b.limit/2 { // else the next groups would be sorted with all others each time
		return fmt.Errorf("%w: more than %d MiB for the first %d", aggregate.ErrMemory, b.limit>>21, len(b.list))
	}
	return nil
}

// cut drops all but the first n groups.
func (b *best) cut() {
	slices.SortFunc(b.list, func(x, y ranked) int { return b.compare(&x, &y) })
	for i := b.n; i < len(b.list); i++ {
		b.bytes -= b.list[i].size()
		b.list[i] = ranked{}
	}
	if len(b.list) >= b.n {
		b.list = b.list[:b.n]
		last := b.list[b.n-1]
		b.last = &last
	}
}

// groups returns the first n groups, in order.
func (b *best) groups() []Group {
	b.cut()
	var list []Group
	for _, r := range b.list {
		list = append(list, r.group)
	}
	return list
}

// choose counts the engine's groups and adds them to the best ones.
func (q *Query) choose() error {
	b, inputs := q.best, q.inputs()
	b.keys, b.first = nil, q.columns[len(q.by)].Type
	for _, c := range q.keys {
		b.keys = append(b.keys, inputs[c].Type)
	}
	for g := range q.engine.Each() {
		q.total++
		r := ranked{key: q.engine.Key(g)}
		v, err := q.value(g, 0)
		if err == nil && v != nil {
			r.first, err = bind.Append([]byte{}, &q.columns[len(q.by)], v)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", q.aggregates[0], err)
		}
		if b.last != nil && b.compare(&r, b.last) > 0 {
			continue
		}
		if r.group, err = q.group(g); err == nil {
			err = b.add(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
