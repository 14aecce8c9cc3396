package encoding

import "github.com/oribi-db/oribi/batch"

// NumberBlock is a block that computes with selected values without decoding them. Bit at+i of a
// selection is for value from+i. If handled is false, the block cannot compute with its values, or
// not in this way, and nothing has changed. After an error, results are undefined.
type NumberBlock interface {
	Block
	// SelectAll is Select for all predicates of a list that is not empty: bits remain for values
	// that match all of them.
	SelectAll(ps []*batch.Predicate, from, n int, sel batch.Bitmap, at int) (handled bool, err error)
	// Sum adds the selected ones of values [from, from+n), integers, to total.
	Sum(from, n int, sel batch.Bitmap, at int, total *Sum) (handled bool, err error)
	// SumProducts adds the products of values [from, from+n) with values [otherFrom, otherFrom+n)
	// of other, integers of at most 64 bits, to total. The selection is for both. from and
	// otherFrom are equal modulo 8.
	SumProducts(from int, other Block, otherFrom, n int, sel batch.Bitmap, at int, total *Sum) (handled bool, err error)
	// Extreme adds the selected ones of values [from, from+n) to e.
	Extreme(from, n int, sel batch.Bitmap, at int, e *Extreme) (handled bool, err error)
}

func (b *shuffled) Sum(from, n int, sel batch.Bitmap, at int, total *Sum) (bool, error) {
	if float(b.typ) {
		return false, nil
	}
	w := planeWorks.Get().(*planeWork)
	defer planeWorks.Put(w)
	signed := signed(b.typ)
	for n > 0 {
		k := b.restOfChunk(from, n)
		if chunks := b.runOf(from, n, at); chunks > 1 {
			k = chunks << b.shift
			cells := sel[at>>6 : (at+k)>>6]
			if count := onesIn(cells); count > 2*maxGathered*chunks {
				if err := b.viewRun(&w.part, from, chunks, &w.view); err != nil {
					return true, err
				}
				total.n += int64(count)
				w.part.sum(total, signed, cells, count, nil, 0, false)
				from, n, at = from+k, n-k, at+k
				continue
			}
		}
		err := b.eachView(w, from, k, sel, at, func(v *planeView, cells []uint64, count int) {
			total.n += int64(count)
			if v.width <= 8 && count <= maxGathered {
				few := v.gather(signed)
				few.sum(total, &w.group, cells)
			} else {
				v.sum(total, signed, cells, count, nil, 0, false)
			}
		})
		if err != nil {
			return true, err
		}
		from, n, at = from+k, n-k, at+k
	}
	return true, nil
}

// eachView calls f for the chunks of values [from, from+n) in which some are selected, with a view,
// and the selection of its cells, which f must not change, and their number. at is the bit of value
// from in sel.
func (b *shuffled) eachView(w *planeWork, from, n int, sel batch.Bitmap, at int,
	f func(v *planeView, cells []uint64, count int)) error {
	for n > 0 {
		k := b.restOfChunk(from, n)
		cells := w.align(from, k, sel, at)
		if count := onesIn(cells); count > 0 {
			if err := b.viewPart(&w.part, from, k, &w.view); err != nil {
				return err
			}
			f(&w.part, cells, count)
		}
		from, n, at = from+k, n-k, at+k
	}
	return nil
}

func (b *shuffled) SumProducts(from int, other Block, otherFrom, n int, sel batch.Bitmap, at int,
	total *Sum) (bool, error) {
	o, ok := other.(*shuffled)
	// The views must begin with the same value, in a whole byte.
	if !ok || float(b.typ) || float(o.typ) || b.width > 8 || o.width > 8 || (from-otherFrom)&7 != 0 {
		return false, nil
	}
	w, views := planeWorks.Get().(*planeWork), viewBuffers.Get().(*viewBuffer)
	defer planeWorks.Put(w)
	defer viewBuffers.Put(views)
	var factors planeView
	for n > 0 {
		k := o.restOfChunk(otherFrom, b.restOfChunk(from, n))
		cells := w.align(from, k, sel, at)
		if count := onesIn(cells); count > 0 {
			if err := b.viewPart(&w.part, from, k, &w.view); err != nil {
				return false, err
			}
			if err := o.viewPart(&factors, otherFrom, k, views); err != nil {
				return false, err
			}
			total.n += int64(count)
			addProducts(total, &w.part, &factors, signed(b.typ), signed(o.typ), cells, count, &w.group)
		}
		from, otherFrom, n, at = from+k, otherFrom+k, n-k, at+k
	}
	return true, nil
}

func (b *shuffled) Extreme(from, n int, sel batch.Bitmap, at int, e *Extreme) (bool, error) {
	w := planeWorks.Get().(*planeWork)
	defer planeWorks.Put(w)
	e.typ = b.typ
	return true, b.eachView(w, from, n, sel, at, func(v *planeView, cells []uint64, _ int) {
		e.add(v, cells, &w.selections)
	})
}
