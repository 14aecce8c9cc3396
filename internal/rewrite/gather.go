package rewrite

import (
	"math/bits"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// gatherer copies the cells of windows from the rows of the inputs, one column after another.
type gatherer struct {
	batch  *batch.RecordBatch
	joined []joined // by column
}

func newGatherer(s *schema.Schema) gatherer {
	g := gatherer{batch: batch.New(s.Columns, 0), joined: make([]joined, len(s.Columns))}
	for i := range g.joined {
		g.joined[i].most = min(maxJoined, maxAllJoined/len(g.joined))
	}
	return g
}

// rows returns the cells of the window's rows, valid until the next call. Byte strings alias the
// byte strings of the inputs and of the patches.
func (g *gatherer) rows(w *window) *batch.RecordBatch {
	n := len(w.keys)
	g.batch.Len = n
	for _, p := range w.parts {
		for i, at := range p.to {
			p.to[i] = min(at, uint32(n)) // dropped rows go to the cell after the last one
		}
	}
	for i := range g.batch.Columns {
		g.column(w, i)
	}
	return g.batch
}

// column gathers column i.
func (g *gatherer) column(w *window, i int) {
	v, n := g.batch.Columns[i], len(w.keys)
	cells := min(1<<bits.Len(uint(n)), batch.WindowRows+1) // at least one more, for rows that are dropped
	v.Reset(cells)
	switch width := v.Type.Width(); {
	case width > 0:
		for k := range w.parts {
			w.parts[k].copyFixed(v, i)
		}
		v.Data = v.Data[:n*width]
	case len(w.patches[i]) == 0 && g.joined[i].join(w.parts, i):
		j := &g.joined[i]
		v.UseCodes(j.dict, cells)
		for k := range w.parts {
			p := &w.parts[k]
			p.copyCodes(v.Codes, p.columns[i].Codes, j.base(p.columns[i].Dict))
		}
		v.Bytes, v.Codes = v.Bytes[:0], v.Codes[:n]
	default:
		for k := range w.parts {
			w.parts[k].copyStrings(v.Bytes, w.parts[k].columns[i])
		}
		v.Bytes = v.Bytes[:n]
	}
	v.Len = n
	for k := range w.parts {
		w.parts[k].copyNulls(v, i)
	}
	for _, p := range w.patches[i] {
		v.SetCell(int(p.row), p.cell)
	}
}

// copyFixed copies cells of fixed width.
func (p *part) copyFixed(dst *batch.Vector, i int) {
	src := p.columns[i]
	switch dst.Type.Width() {
	case 1:
		scatter(p, batch.Raw[uint8](dst), batch.Raw[uint8](src))
	case 2:
		scatter(p, batch.Raw[uint16](dst), batch.Raw[uint16](src))
	case 4:
		scatter(p, batch.Raw[uint32](dst), batch.Raw[uint32](src))
	case 8:
		scatter(p, batch.Raw[uint64](dst), batch.Raw[uint64](src))
	default:
		scatter(p, batch.Raw[batch.Int128](dst), batch.Raw[batch.Int128](src))
	}
}

// scatter copies the cells of a part to their rows in dst.
func scatter[T any](p *part, dst, src []T) {
	src = src[p.from : p.from+len(p.to)]
	if !p.apart {
		copy(dst[p.to[0]:], src)
		return
	}
	for i, at := range p.to {
		dst[at] = src[i]
	}
}

// copyCodes copies codes, which base is added to.
func (p *part) copyCodes(dst, src []uint32, base uint32) {
	src = src[p.from : p.from+len(p.to)]
	for i, at := range p.to {
		dst[at] = src[i] + base
	}
}

// copyStrings copies byte strings, without what they refer to.
func (p *part) copyStrings(dst [][]byte, src *batch.Vector) {
	if src.Dict == nil {
		scatter(p, dst, src.Bytes)
		return
	}
	words, codes := src.Dict.Words, src.Codes[p.from:p.from+len(p.to)]
	for i, at := range p.to {
		dst[at] = words[codes[i]]
	}
}

// copyNulls sets the NULLs of column i.
func (p *part) copyNulls(dst *batch.Vector, i int) {
	src := p.columns[i].Present
	if src == nil {
		return
	}
	for k, at := range p.to {
		if int(at) < dst.Len && !src.Get(p.from+k) {
			dst.NeedPresent().Clear(int(at))
			if dst.Type.Variable() && dst.Dict == nil {
				dst.Bytes[at] = nil
			}
		}
	}
}

// Dictionaries are joined up to maxJoined words in a column, and maxAllJoined in all columns. The
// codes of more words save the writer little: it looks up each word once.
const (
	maxJoined    = 1 << 14
	maxAllJoined = 1 << 18
)

// joined is a dictionary with the words of several others, one after another. A word that is in two
// of them is in it twice. The inputs' codes, plus the position of their first word, are its codes.
type joined struct {
	most  int // words
	dict  *batch.Dictionary
	parts []*batch.Dictionary
	bases []uint32
}

// join makes j contain the dictionaries of column i in all parts. It returns false if a part has
// none, or if they have too many words. As long as no other dictionary is added, j.dict remains the
// same.
func (j *joined) join(parts []part, i int) bool {
	missing := false
	for k := range parts {
		d := parts[k].columns[i].Dict
		if d == nil {
			return false
		}
		missing = missing || !slices.Contains(j.parts, d)
	}
	if !missing {
		return true
	}
	words := 0
	for k := range parts {
		words += len(parts[k].columns[i].Dict.Words)
	}
	switch {
	case words > j.most:
		return false
	case j.dict != nil && words+len(j.dict.Words) > j.most:
		*j = joined{most: j.most}
	}
	next := &batch.Dictionary{} // a vector may still refer to the last one
	if j.dict != nil {
		next.Words = slices.Clip(j.dict.Words)
	}
	for k := range parts {
		if d := parts[k].columns[i].Dict; !slices.Contains(j.parts, d) {
			j.parts, j.bases = append(j.parts, d), append(j.bases, uint32(len(next.Words)))
			next.Words = append(next.Words, d.Words...)
		}
	}
	j.dict = next
	return true
}

// base returns the position of the first word of d, which is in j.
func (j *joined) base(d *batch.Dictionary) uint32 { return j.bases[slices.Index(j.parts, d)] }
