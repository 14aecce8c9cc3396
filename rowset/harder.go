package rowset

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/schema"
)

// restBlockBytes returns the size of the cblocks of byte strings, other than codes, of column i in
// a file for a compression other than Fast. The cblocks are larger than a flush's: the window of
// LZ4 is 64 KiB, and zlib finds more in its window of 32 KiB the fewer times it begins anew. Many
// columns have smaller ones, as in columnBlockBytes.
func restBlockBytes(s *schema.Schema, i int, k schema.Compression) int {
	if n := int(s.Columns[i].BlockBytes); n > 0 {
		return n
	}
	n := 64 << 10
	if k == schema.Dense {
		n = 256 << 10
	}
	return max(stringBlockBytes, min(n, columnsBytes/len(s.Columns)))
}

const (
	// A column is rewritten if its sample has at most this percentage of the bytes.
	worthPercent = 97
	leastAdvised = 64 << 10 // bytes of the smallest file for which there is advice
	// The sample of a column: the first rows of windows spread evenly over the rowset, and about
	// how many bytes they have.
	sampleWindows = 16
	sampleBytes   = 1 << 20
)

// Recompressible returns the columns, as indexes in the schema, whose files are not in the form
// that the schema wants of a rowset at rest.
func (m *Metadata) Recompressible(s *schema.Schema) (cols []int) {
	for i := range s.Columns {
		c := &s.Columns[i]
		has := func(b ColumnBlock) bool { return b.ID == c.ID }
		if slices.ContainsFunc(m.Columns, has) && m.form(c.ID) != c.Compression.Harder(c.Stored()) {
			cols = append(cols, i)
		}
	}
	return cols
}

// form returns the compression for which a column was rewritten; DefaultCompression: it was not.
func (m *Metadata) form(id schema.ColumnID) schema.Compression {
	for _, f := range m.Forms {
		if f.ID == id {
			return f.Compression
		}
	}
	return schema.DefaultCompression
}

// SetForms records that columns of s are in the form that the schema wants, or as a flush writes
// them if recompressed is false.
func (m *Metadata) SetForms(s *schema.Schema, cols []int, recompressed bool) {
	m.Forms = slices.Clone(m.Forms)
	for _, i := range cols {
		c := &s.Columns[i]
		m.Forms = slices.DeleteFunc(m.Forms, func(f Form) bool { return f.ID == c.ID })
		if k := c.Compression.Harder(c.Stored()); recompressed && k != schema.DefaultCompression {
			m.Forms = append(m.Forms, Form{ID: c.ID, Compression: k})
		}
	}
}

// Smallest returns how to write column i of the schema in the form that the schema wants of a rowset
// at rest, and whether that is worth a rewrite of the file. It tries what there is to choose from on
// a sample of the cells. The column has a file. Errors: ErrCorrupt.
func (d *DiskRowSet) Smallest(i int) (o cfile.WriterOptions, worth bool, err error) {
	c := &d.Schema.Columns[i]
	forms := harderOptions(d.Schema, i, c.Compression)
	if forms == nil {
		return columnOptions(d.Schema, i, nil), true, nil
	}
	x, err := d.newTrial(i)
	if err != nil {
		return o, false, err
	}
	k, bytes, err := x.smallest(forms)
	if err != nil {
		return o, false, err
	}
	worth = d.Metadata().form(c.ID) != schema.DefaultCompression || pays(bytes, x.now)
	return forms[k], worth, nil
}

// Savings returns the shares of the bytes of column i that a rewrite for schema.LZ4HC and for
// schema.Dense would save, by a sample; 0 if it would not pay, as for a small file. The column has a
// file. Errors: ErrCorrupt.
func (d *DiskRowSet) Savings(i int) (lz4hc, dense float64, err error) {
	if f, err := d.File(i); err != nil || f.Info().Bytes < leastAdvised {
		return 0, 0, err
	}
	x, err := d.newTrial(i)
	if err != nil {
		return 0, 0, err
	}
	var shares [2]float64
	for k, want := range [2]schema.Compression{schema.LZ4HC, schema.Dense} {
		_, bytes, err := x.smallest(harderOptions(d.Schema, i, want))
		if err != nil {
			return 0, 0, err
		}
		if pays(bytes, x.now) {
			shares[k] = 1 - float64(bytes)/float64(x.now)
		}
	}
	return shares[0], shares[1], nil
}

// pays reports whether a column is rewritten whose sample takes bytes instead of now.
func pays(bytes, now int64) bool { return bytes <= now*worthPercent/100 }

// trial is a sample of the cells of a column.
type trial struct {
	column *schema.Column
	cells  []*batch.Vector
	now    int64 // bytes in the present form
}

func (d *DiskRowSet) newTrial(i int) (*trial, error) {
	f, err := d.File(i)
	if err != nil {
		return nil, err
	}
	x := &trial{column: &d.Schema.Columns[i]}
	if x.cells, err = d.sample(i, f); err != nil {
		return nil, err
	}
	o := columnOptions(d.Schema, i, nil)
	o.Encoding, o.Compression = f.Info().Encoding, f.Info().Compression
	x.now, err = x.size(o)
	return x, err
}

// smallest returns the index of the form that takes least space, and the bytes. An earlier form is
// preferred to a later form that takes only a little less.
func (x *trial) smallest(forms []cfile.WriterOptions) (best int, bytes int64, err error) {
	for k, o := range forms {
		n, err := x.size(o)
		if err != nil {
			return 0, 0, err
		}
		if k == 0 || pays(n, bytes) {
			best, bytes = k, n
		}
	}
	return best, bytes, nil
}

// size returns the size of a file of the sample.
func (x *trial) size(o cfile.WriterOptions) (int64, error) {
	var file block.Memory
	w, err := cfile.NewWriter(&file, o)
	if err != nil {
		return 0, err
	}
	for _, v := range x.cells {
		if err := appendColumn(w, x.column, v); err != nil {
			return 0, err
		}
	}
	err = w.Finish()
	return file.Size(), err
}

// harderOptions returns the forms of column i that a compression allows for a rowset at rest, the
// forms that are read faster first. It returns nil if the compression allows no other form.
func harderOptions(s *schema.Schema, i int, k schema.Compression) []cfile.WriterOptions {
	c := &s.Columns[i]
	o := columnOptions(s, i, nil)
	encodings := []schema.Encoding{o.Encoding}
	switch o.Compression = k.Harder(c.Stored()); o.Compression {
	case schema.DefaultCompression:
		return nil
	case schema.Dense:
		if c.Encoding == schema.Auto {
			encodings = denseEncodings(c.Stored())
		}
	}
	o.StringBytes = restBlockBytes(s, i, o.Compression)
	forms := make([]cfile.WriterOptions, len(encodings))
	for k := range forms {
		forms[k] = o
		forms[k].Encoding = encodings[k]
	}
	if o.Compression == schema.LZ4HC && c.Encoding == schema.Auto && o.Encoding == schema.Dictionary {
		o.NoWords = true // smaller for values that do not repeat, such as hashes
		forms = append(forms, o)
	}
	return forms
}

// denseEncodings returns the encodings of a type one of which is the smallest under zlib. Texts are
// smaller in prefix encoding even if they share no prefixes: the lengths are next to the texts, where
// the offsets of plain encoding are hardly compressed.
func denseEncodings(t schema.Type) []schema.Encoding {
	switch t.Physical() {
	case schema.Binary:
		return []schema.Encoding{schema.Dictionary, schema.Prefix}
	case schema.Bool:
		return []schema.Encoding{schema.RLE, schema.Plain}
	}
	return []schema.Encoding{schema.Bitshuffle, schema.Plain}
}

// sample reads cells of column i, whose file is f: runs of rows, in order.
func (d *DiskRowSet) sample(i int, f *cfile.Reader) (cells []*batch.Vector, err error) {
	c := &d.Schema.Columns[i]
	window, err := d.windowOf(func() []int { return []int{i} }, d.Tracker())
	if err != nil {
		return nil, err
	}
	r := f.NewColumnReader()
	r.Transient = true
	rows := batch.Ordinal(d.Metadata().Rows)
	step := max(window, rows/sampleWindows)
	run := sampleBytes / max(int64((rows+step-1)/step), 1)
	bytes, read := f.Info().Bytes, int64(rows) // for the first run, as stored
	for from := batch.Ordinal(0); from < rows; from += step {
		n := max(1, run*read/max(bytes, 1))
		v := &batch.Vector{Type: c.Type}
		r.Strings = nil // cells stay valid
		if err := readFull(r, d, c, from, int(min(n, int64(min(window, rows-from)))), v); err != nil {
			return nil, err
		}
		cells = append(cells, v)
		if from == 0 {
			bytes, read = 0, 0
		}
		bytes, read = bytes+vectorBytes(v), read+int64(v.Len)
	}
	return cells, nil
}

// vectorBytes returns the bytes of the cells.
func vectorBytes(v *batch.Vector) int64 {
	if v.Elements != nil {
		return vectorBytes(v.Elements)
	}
	if w := v.Type.Width(); w > 0 {
		return int64(v.Len) * int64(w)
	}
	n := int64(0)
	for i := range v.Len {
		n += int64(len(v.Cell(i)))
	}
	return n
}
