package tablet

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/oribi-db/oribi/rowset"
)

// mergeSets merges rowsets for their owner and returns the edit, of which BytesWritten counts all
// steps. Without force, it does nothing if a rewrite would change no rowset.
//
// If reading all of them would take more memory than Options.FitMerge allows, some are merged first:
//
//	rowsets   a b c d e f g             over one key, of which three fit
//	step 1    a b c  → h i              h and i do not overlap: one of them is read at a time
//	step 2    d e f  → j k              not with h and i, so each row is rewritten seldom
//	step 3    g h i j k → l m n
//
// Each step is a merge of its own, with a commit and an event.
func (t *Tablet) mergeSets(ctx context.Context, ids []uint64, why string, force bool) (*Edit, error) {
	var written int64
	var between []uint64 // rowsets written by a step for a later one
	defer func() { t.claims.endCompaction(between) }()
	var next []uint64 // rowsets of between that wait until all of ids fit
	for {
		step, release, err := t.reserveStep(ids)
		if err != nil {
			return nil, err
		}
		last := len(step) == len(ids)
		if last && len(next) > 0 {
			release()
			ids, next = append(ids, next...), nil
			continue
		}
		var added func([]uint64)
		if !last {
			added = func(ids []uint64) {
				between = append(between, ids...)
				t.claims.adopt(ids)
			}
		}
		e, err := func() (*Edit, error) {
			defer release()
			return t.mergeStep(ctx, step, why, force || !last, added)
		}()
		if e != nil {
			written += e.BytesWritten
			e.BytesWritten = written
		}
		if last || err != nil {
			return e, err
		}
		force = true
		ids = slices.DeleteFunc(slices.Clone(ids), func(id uint64) bool { return slices.Contains(step, id) })
		for _, a := range e.Added {
			next = append(next, a.Row.ID)
		}
	}
}

// reserveStep returns the rowsets of the next step, as fitting does, and counts its memory until release
// is called.
func (t *Tablet) reserveStep(ids []uint64) (step []uint64, release func(), err error) {
	if t.opts.FitMerge == nil {
		return ids, func() {}, nil
	}
	var memory int64
	err = t.opts.FitMerge(func(limit int64) (int64, error) {
		step, memory, err = t.fitting(ids, limit)
		return memory, err
	})
	return step, func() { t.opts.GrowMerge(-memory) }, err
}

// reserve calls grow, which may be nil, for n bytes. The caller calls release when the memory is no
// longer in use.
func reserve(grow func(n int64), n int64) (release func()) {
	if grow == nil || n == 0 {
		return func() {}
	}
	grow(n)
	return func() { grow(-n) }
}

// fitting returns the rowsets that should be merged first, since reading all of them needs more than limit
// bytes: at least two, which overlap. It returns ids if all of them fit. The second result is the
// memory that their merge takes, in bytes.
//
// A merge has as many rowsets in memory as are over one key, see rewrite.Bounded.
func (t *Tablet) fitting(ids []uint64, limit int64) ([]uint64, int64, error) {
	st, err := t.acquire()
	if err != nil {
		return nil, 0, err
	}
	defer st.release()
	var sets []*rowset.DiskRowSet
	for _, d := range st.tree.Sets {
		if slices.Contains(ids, d.Metadata().ID) {
			sets = append(sets, d)
		}
	}
	slices.SortFunc(sets, func(a, b *rowset.DiskRowSet) int {
		return cmp.Or(bytes.Compare(a.Metadata().MinKey, b.Metadata().MinKey),
			cmp.Compare(a.Metadata().ID, b.Metadata().ID))
	})
	var over []*rowset.DiskRowSet // that contain the first key of the next one
	var needs []int64
	var total, most int64
	for _, d := range sets {
		for i := len(over) - 1; i >= 0; i-- {
			if bytes.Compare(over[i].Metadata().MaxKey, d.Metadata().MinKey) < 0 {
				total -= needs[i]
				over, needs = slices.Delete(over, i, i+1), slices.Delete(needs, i, i+1)
			}
		}
		need, err := d.HistoriesBytes()
		if err != nil {
			need = 0 // the merge will report the damage
		}
		if total+need > limit && len(over) >= 2 {
			return idsOf(over), total, nil
		}
		over, needs, total = append(over, d), append(needs, need), total+need
		most = max(most, total)
	}
	return ids, most, nil
}

func idsOf(sets []*rowset.DiskRowSet) []uint64 {
	ids := make([]uint64, len(sets))
	for i, d := range sets {
		ids[i] = d.Metadata().ID
	}
	return ids
}
