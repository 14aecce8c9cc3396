package aggregate

import (
	"cmp"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// keyColumn is a column of the key of groups. It numbers the distinct values; NULL is number 0.
type keyColumn struct {
	column int
	typ    schema.Type

	fixed  numbers           // cells of up to 64 bits, by their keys
	texts  map[string]uint32 // other cells
	values []string          // of texts, by number; [0] is NULL
	size   int64             // bytes of texts; none is added above most
	most   int64

	dict  *batch.Dictionary // of the last batch in dictionary form
	codes []uint32          // numbers of its words; 0 = not known yet
	buf   []int64
}

// bytesPerText is about how much memory a text takes in addition to its bytes.
const bytesPerText = 64

func newKeyColumn(column int, t schema.Type, most int64) *keyColumn {
	return &keyColumn{column: column, typ: t, texts: map[string]uint32{}, values: []string{""}, most: most}
}

// text reports whether the cells are numbered as byte strings.
func (k *keyColumn) text() bool { return k.typ.Variable() || k.typ.Width() > 8 }

// bytes returns about how much memory the values take.
func (k *keyColumn) bytes() int64 {
	return k.size + int64(len(k.values))*bytesPerText + int64(len(k.fixed.keys))*bytesPerKey
}

// number sets numbers[j] to the number of the cell in row j of the selected rows of v.
func (k *keyColumn) number(v *batch.Vector, r *rows, numbers []uint32) {
	switch {
	case !k.text():
		k.numberFixed(v, r, numbers)
	case v.Dict != nil:
		k.numberCodes(v, r, numbers)
	default:
		for j := range numbers {
			numbers[j] = k.numberText(v.Cell(r.row(j)))
		}
	}
	if v.Present != nil {
		for j := range numbers {
			if v.IsNull(r.row(j)) {
				numbers[j] = 0
			}
		}
	}
}

// numberText returns the number of a cell, 0 for NULL, and for any cell when the texts take too
// much memory.
func (k *keyColumn) numberText(cell []byte) uint32 {
	if cell == nil || k.size > k.most {
		return 0
	}
	n, ok := k.texts[string(cell)]
	if !ok {
		n = uint32(len(k.values))
		k.values = append(k.values, string(cell))
		k.texts[k.values[n]] = n
		k.size += int64(len(cell))
	}
	return n
}

// numberCodes looks up each word of a dictionary once.
func (k *keyColumn) numberCodes(v *batch.Vector, r *rows, numbers []uint32) {
	for j := range numbers {
		if i := r.row(j); !v.IsNull(i) {
			numbers[j] = k.word(v.Dict, v.Codes[i])
		}
	}
}

// load sets buf to the keys of the selected rows of v. Zeros of either sign have the same key.
func (k *keyColumn) load(v *batch.Vector, r *rows) {
	k.buf = loadKeys(k.buf, v, r)
	if k.typ == schema.Float || k.typ == schema.Double {
		for j, key := range k.buf {
			if key == -1 { // −0
				k.buf[j] = 0
			}
		}
	}
}

func (k *keyColumn) numberFixed(v *batch.Vector, r *rows, numbers []uint32) {
	k.load(v, r)
	// NULLs have undefined cells, which must not get numbers.
	if v.Present == nil {
		last, number := ^k.buf[0], uint32(0)
		for j, key := range k.buf {
			if key != last { // equal values are often next to each other
				last, number = key, k.fixed.number(uint64(key))+1
			}
			numbers[j] = number
		}
		return
	}
	for j, key := range k.buf {
		if !v.IsNull(r.row(j)) {
			numbers[j] = k.fixed.number(uint64(key)) + 1
		}
	}
}

// cell returns the cell with a number, nil for NULL.
func (k *keyColumn) cell(number uint32) []byte {
	switch {
	case number == 0:
		return nil
	case k.text():
		return append([]byte{}, k.values[number]...)
	}
	return cellOf(k.typ, int64(k.fixed.keys[number-1]))
}

// compare compares two values by number. NULL is after all others.
func (k *keyColumn) compare(a, b uint32) int {
	switch {
	case a == b:
		return 0
	case a == 0:
		return 1
	case b == 0:
		return -1
	case !k.text():
		return cmp.Compare(int64(k.fixed.keys[a-1]), int64(k.fixed.keys[b-1]))
	case k.typ.Variable():
		return cmp.Compare(k.values[a], k.values[b])
	}
	return batch.Compare(k.typ, []byte(k.values[a]), []byte(k.values[b]))
}

// word returns the number of the word with a code. The code after the last word means NULL.
func (k *keyColumn) word(d *batch.Dictionary, code uint32) uint32 {
	if int(code) == len(d.Words) {
		return 0
	}
	if k.dict != d {
		k.dict = d
		k.codes = grown(k.codes, len(d.Words))
		clear(k.codes)
	}
	if k.codes[code] == 0 {
		cell := d.Words[code]
		if cell == nil {
			cell = []byte{}
		}
		k.codes[code] = k.numberText(cell)
	}
	return k.codes[code]
}

// groups numbers the distinct keys of rows.
type groups struct {
	columns []*keyColumn
	pairs   []numbers // pairs[i] numbers the pairs of a number of the first i+1 columns and one of the next column

	ids, next []uint32
}

// count returns the number of groups so far. Some may have no rows.
func (g *groups) count() int {
	switch n := len(g.columns); n {
	case 0:
		return 1
	case 1:
		k := g.columns[0]
		if k.text() {
			return len(k.values)
		}
		return len(k.fixed.keys) + 1
	default:
		return len(g.pairs[n-2].keys)
	}
}

// bytes returns about how much memory the keys take.
func (g *groups) bytes() (n int64) {
	for _, k := range g.columns {
		n += k.bytes()
	}
	for i := range g.pairs {
		n += int64(len(g.pairs[i].keys)) * bytesPerKey
	}
	return n
}

// number returns the group of each selected row.
func (g *groups) number(b *batch.RecordBatch, r *rows) []uint32 {
	g.ids, g.next = grown(g.ids, r.n), grown(g.next, r.n)
	g.columns[0].number(b.Columns[g.columns[0].column], r, g.ids)
	for i, k := range g.columns[1:] {
		k.number(b.Columns[k.column], r, g.next)
		pairs := &g.pairs[i]
		last, number := ^uint64(0), uint32(0)
		for j, second := range g.next {
			pair := uint64(g.ids[j])<<32 | uint64(second)
			if pair != last { // equal rows are often next to each other
				last, number = pair, pairs.number(pair)
			}
			g.ids[j] = number
		}
	}
	return g.ids
}

// slots returns a number below n for each selected row, made of the codes of dictionaries, which
// needs no look-up for each row. Rows of different groups have different numbers. It returns nil if
// a column is not in dictionary form, or n would be above the number of rows.
func (g *groups) slots(b *batch.RecordBatch, r *rows) (slots []uint32, n int) {
	n = 1
	for _, k := range g.columns {
		v := b.Columns[k.column]
		if v.Dict == nil || n*codesOf(v) > r.n {
			return nil, 0
		}
		n *= codesOf(v)
	}
	if v := b.Columns[g.columns[0].column]; len(g.columns) == 1 && r.all && v.Present == nil {
		return v.Codes[:r.n], n
	}
	g.ids = grown(g.ids, r.n)
	clear(g.ids)
	for _, k := range g.columns {
		v := b.Columns[k.column]
		codes, null := uint32(codesOf(v)), uint32(len(v.Dict.Words))
		if r.all && v.Present == nil {
			for j, code := range v.Codes[:len(g.ids)] {
				g.ids[j] = g.ids[j]*codes + code
			}
			continue
		}
		if v.Present == nil {
			for j, i := range r.at[:len(g.ids)] {
				g.ids[j] = g.ids[j]*codes + v.Codes[i]
			}
			continue
		}
		for j := range g.ids {
			i := r.row(j)
			code := v.Codes[i]
			if v.IsNull(i) {
				code = null
			}
			g.ids[j] = g.ids[j]*codes + code
		}
	}
	return g.ids, n
}

// codesOf returns how many codes the cells of v can have, one of them for NULL.
func codesOf(v *batch.Vector) int {
	if v.Present != nil {
		return len(v.Dict.Words) + 1
	}
	return len(v.Dict.Words)
}

// group returns the group of the rows that have a number which slots returned.
func (g *groups) group(b *batch.RecordBatch, slot uint32) uint32 {
	below := uint32(1) // product of the codes of the columns after
	for _, k := range g.columns {
		below *= uint32(codesOf(b.Columns[k.column]))
	}
	var number uint32
	for i, k := range g.columns {
		v := b.Columns[k.column]
		below /= uint32(codesOf(v))
		word := k.word(v.Dict, slot/below)
		if slot %= below; i == 0 {
			number = word
		} else {
			number = g.pairs[i-1].number(uint64(number)<<32 | uint64(word))
		}
	}
	return number
}

// key appends the numbers of a group's values to dst.
func (g *groups) key(dst []uint32, group uint32) []uint32 {
	n := len(g.columns)
	if n == 0 {
		return dst
	}
	at := len(dst)
	dst = extended(dst, at+n)
	for i := n - 2; i >= 0; i-- {
		pair := g.pairs[i].keys[group]
		dst[at+i+1], group = uint32(pair), uint32(pair>>32)
	}
	dst[at] = group
	return dst
}

// compare compares two keys, each as key returns it.
func (g *groups) compare(a, b []uint32) int {
	for i, k := range g.columns {
		if order := k.compare(a[i], b[i]); order != 0 {
			return order
		}
	}
	return 0
}
