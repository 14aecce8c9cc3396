package carbondata

import "github.com/oribi-db/oribi/batch"

// page is a decoded page. Its memory is used again for the next page of the column.
type page struct {
	column  *Column
	form    form
	rows    int
	nulls   []byte // bit i%8 of byte i/8: row i is null; may end early
	numbers numbers
	data    []byte
	offsets []uint32 // of the strings in data, and the end of the last
	prefix  int      // bytes of a string's length
	dict    *dictionary
	// of formSurrogates, indexes in dict: of the entries, or of the runs if there are ends; nil
	// before findCodes
	codes   []uint32
	ends    []uint32 // of formSurrogates with runs: the entries after each; nil without runs and with row IDs
	inverse []uint16 // from row to entry; nil if rows are in the order of the entries

	elements int // of all rows of ARRAY and MAP

	buffers pageBuffers
}

// pageBuffers is the memory of a page.
type pageBuffers struct {
	nulls, data, runs []byte
	offsets, codes    []uint32
	inverse           []uint16
}

// size returns the bytes of b.
func (b *pageBuffers) size() int {
	return cap(b.nulls) + cap(b.data) + cap(b.runs) +
		offsetBytes*(cap(b.offsets)+cap(b.codes)) + rowIDLen*cap(b.inverse)
}

// entry returns the entry of a row.
func (p *page) entry(row int) int {
	if p.inverse != nil {
		return int(p.inverse[row])
	}
	return row
}

// cells reads the values of one column of a file, page by page.
type cells struct {
	column *Column
	chunk  chunk
	dict   *dictionary
	page   page

	children []*cells
	elements *batch.Vector // of an array, see fillArrays
	parts    [][]byte      // the same
	packed   []byte        // the arrays of a vector
}

func newCells(col *Column) *cells {
	c := &cells{column: col}
	for i := range col.Children {
		c.children = append(c.children, newCells(&col.Children[i]))
	}
	return c
}

// open reads the headers and the dictionaries of the column and its children in a blocklet.
func (c *cells) open(f *File, b *blocklet, m *memory) (err error) {
	c.dict = nil
	if c.chunk, err = f.readChunk(b, c.column.first, m); err != nil {
		return err
	}
	if c.chunk.dictionary != nil {
		if c.dict, err = readDictionary(&c.chunk, c.column.Type, m); err != nil {
			return inside(err, "dictionary")
		}
	}
	for _, child := range c.children {
		if err := child.open(f, b, m); err != nil {
			return inside(err, "column %q", child.column.Name)
		}
	}
	return nil
}

// size returns the memory of the pages of the column and its children.
func (c *cells) size() int {
	n := c.page.buffers.size()
	for _, child := range c.children {
		n += child.size()
	}
	return n
}

// release frees the memory of the pages.
func (c *cells) release() {
	c.page = page{}
	for _, child := range c.children {
		child.release()
	}
}
