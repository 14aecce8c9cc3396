package rowset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/rowpage"
	"github.com/oribi-db/oribi/schema"
)

// A row file repeats the base data of a rowset row by row, so that a read of one row reads one
// cblock instead of one for each column. It is a CFile of type BINARY, plain and not compressed,
// with a positional index, whose cell i is page i: a separator, which is at most the first key of
// the page and greater than all keys before it, and the packed rows (cfile.AppendKeyed,
// rowpage.Format). All pages but the last have the same number of rows. Long byte strings may be
// missing in the pages; they are read from their columns. The pair oribi.row_words has the words of
// the pages (rowpage.Words).
//
// A file of version 1 has one row in each cell: its key and its image (change.RowFormat). Such
// files are still read.
//
// The footer's pair oribi.rows describes the pages. Readers compare it with the rowset's metadata:
// the file answers only for the very files that it repeats. A major delta compaction that rewrites
// some columns may leave the row file as it is.
//
//	offset  width  field    meaning
//	0       1      version  2
//	1       1      flags    features that a reader must know; none yet
//	2       2      rows     of a page; missing in version 1, which has one
//	4       14 n   columns  of the pages, in their order:
//	+0      4      ID       of the column
//	+4      1      type     Kudu's number; 21 = array
//	+5      1      null     1: the column is nullable
//	+6      8      block    of the column's base data, or 0 if all cells are the default and have no file
//
// 128 rows of INT32 column 10 in block 1 and nullable STRING column 11 in block 2: 02 00 80 00
// 0a 00 00 00 05 00 01 00 00 00 00 00 00 00 0b 00 00 00 08 01 02 00 00 00 00 00 00 00
const (
	rowFilePair    = "oribi.rows"      // file format: never change
	rowWordsPair   = "oribi.row_words" // file format: never change
	rowFileImages  = 1                 // the version with a row in each cell; file format: never change
	rowFileVersion = 2                 // file format: never change
	rowFileHeader  = 4                 // of version 2, 2 of version 1; file format: never change
	rowFileColumn  = 14                // file format: never change

	rowFileIndexBytes = 1 << 20 // of an index node: each index is one node, read at once
)

// A page has as many rows as have about pageBytes, if numbers pack into a quarter, and including the
// byte strings to which the page refers, but at most mostPageRows. A lookup reads and verifies the
// whole page and a piece of each column of byte strings: 4 KiB take not much longer than 1 KiB.
const (
	mostPageRows  = 128
	leastPageRows = 32 // of mostly numbers: a page has 10 bytes for each column besides
	pageBytes     = 8 << 10
	packedNumbers = 4

	// A read of one byte string reads and verifies a piece, which has 14 bytes in the page.
	pieceBytes     = 2 << 10
	leastPieceRows = 8
)

// schema.AutoRowFile writes a row file from leastRowFile rows on, or from rows on whose columns have
// leastColumnBytes, for instance 10,000 rows of 300 columns or of a kilobyte. The cblocks of fewer
// rows are small.
const (
	leastRowFile     = 64 << 10
	leastColumnBytes = 8 << 20
)

// appendRowColumns appends the pair that describes pages of rows: columns of s, in the blocks.
func appendRowColumns(dst []byte, s *schema.Schema, blocks []ColumnBlock, rows int) []byte {
	dst = append(dst, rowFileVersion, 0)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(rows))
	for i := range s.Columns {
		c := &s.Columns[i]
		dst = binary.LittleEndian.AppendUint32(dst, uint32(c.ID))
		null := byte(0)
		if c.Nullable {
			null = 1
		}
		dst = append(dst, byte(c.Type), null)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(blockOf(blocks, c.ID)))
	}
	return dst
}

// blockOf returns the block of a column, or 0 if blocks does not have the column.
func blockOf(blocks []ColumnBlock, id schema.ColumnID) block.ID {
	for _, b := range blocks {
		if b.ID == id {
			return b.Block
		}
	}
	return 0
}

// rowColumns is the parsed pair that describes the pages.
type rowColumns struct {
	version byte
	rows    int             // of a page
	columns []schema.Column // only what matters for pages
	blocks  []block.ID      // of the columns
}

// parseRowColumns parses the pair that describes the pages. Errors: ErrCorrupt; ErrUnsupported for a
// newer version.
func parseRowColumns(value []byte) (p rowColumns, err error) {
	header := rowFileHeader
	if len(value) > 0 && value[0] == rowFileImages {
		header -= 2
	}
	switch n := len(value) - header; {
	case n < 0 || n%rowFileColumn != 0 || n/rowFileColumn > schema.MaxColumns:
		return p, fault.Corruptf("row file: pair %s of %d bytes", rowFilePair, len(value))
	case value[0] < rowFileImages || value[0] > rowFileVersion || value[1] != 0:
		return p, fault.Unsupportedf("row file: version %d, flags %#x", value[0], value[1])
	}
	le := binary.LittleEndian
	p.version, p.rows = value[0], 1
	if p.version == rowFileVersion {
		if p.rows = int(le.Uint16(value[2:])); p.rows < 1 || p.rows > rowpage.MaxRows {
			return p, fault.Corruptf("row file: pages of %d rows", p.rows)
		}
	}
	for b := value[header:]; len(b) > 0; b = b[rowFileColumn:] {
		c := schema.Column{ID: schema.ColumnID(le.Uint32(b)), Type: schema.Type(b[4]), Nullable: b[5] == 1}
		if !c.Type.Valid() || b[5] > 1 {
			return p, fault.Corruptf("row file: column %d of type %d, nullable %d", c.ID, b[4], b[5])
		}
		p.columns, p.blocks = append(p.columns, c), append(p.blocks, block.ID(le.Uint64(b[6:])))
	}
	return p, nil
}

// rowFileWriter writes a row file, or finds that it does not pay. Not safe for concurrent use.
type rowFileWriter struct {
	schema   *schema.Schema
	blocks   []ColumnBlock
	mode     schema.RowFile
	pages    *rowpage.Builder
	pageRows int // 0 before the first rows

	file    *cfile.Writer // nil before create
	early   [][]byte      // cells of pages that wait for create
	rows    int64         // in pages
	waiting []waitingPage // for the pieces of their byte strings
	pieces  []pieces      // by column
	columns []output[*cfile.Writer]

	// Of schema.AutoRowFile, the bytes of the columns that are in pages, with and without packing.
	packed, plain int64
	decided       bool // the file pays

	rest      []*batch.Vector // rows that are not in a page yet; their byte strings are in heap
	heap      []byte
	separator []byte // of the first of them
	lastKey   []byte
	vector    batch.Vector
}

// waitingPage is a page whose byte strings are not all in their files yet.
type waitingPage struct {
	cell  []byte // without pieces
	first int64  // row
	rows  int
	far   []int // columns
}

// pieces are the pieces of byte strings of one column. A goroutine that writes the column adds to
// them, between calls of settle.
type pieces struct {
	on    bool
	list  []rowpage.Piece
	first int64 // row of the list
	rows  int64 // in the list, and before it
	plain int64 // of them, those whose byte strings are stored as they are
	bytes int64 // of their byte strings
}

// follow makes pages refer to the byte strings of a column that they do not have, which are written
// to file.
func (w *rowFileWriter) follow(col int, file *cfile.Writer) {
	p := &w.pieces[col]
	p.on = true
	w.pages.SetFar(col, true)
	file.OnStrings(func(s *cfile.WrittenStrings) {
		if p.on {
			p.add(s, int64(w.pageRows))
		}
	})
}

// add adds the byte strings of a cblock, in pieces of about pieceBytes that are in one page each.
func (p *pieces) add(s *cfile.WrittenStrings, pageRows int64) {
	step := pageRows
	if _, n, _, ok := s.Piece(0, s.Rows); ok {
		for step > leastPieceRows && step*n > pieceBytes*int64(s.Rows) {
			step /= 2
		}
	}
	for from := 0; from < s.Rows; {
		to := int(min(int64(s.Rows), int64(from)+step-(s.First+int64(from))%step))
		piece := rowpage.Piece{Rows: to - from, Offset: -1}
		if offset, n, crc, ok := s.Piece(from, to); ok {
			piece.Offset, piece.CRC = offset, crc
			p.plain, p.bytes = p.plain+int64(to-from), p.bytes+n
		}
		p.list, from = append(p.list, piece), to
		p.rows += int64(piece.Rows)
	}
}

// settle writes the pages whose byte strings are all in their files. No column is written meanwhile.
func (w *rowFileWriter) settle() error {
	if w.mode == schema.NoRowFile {
		for i := range w.pieces {
			w.pieces[i] = pieces{}
		}
		w.waiting = nil
		return nil
	}
	if w.file == nil && w.mode == schema.AutoRowFile && !w.decided &&
		(w.rows >= leastRowFile || w.packed >= maxHeldPages || w.columnBytes() >= leastColumnBytes) {
		if w.decided = w.pays(); !w.decided {
			w.mode, w.early = schema.NoRowFile, nil
			return w.settle()
		}
	}
	for col := range w.pieces {
		if p := &w.pieces[col]; 2*p.plain < p.rows && (p.rows >= leastRowFile || w.file != nil) {
			w.pages.SetFar(col, false) // its byte strings compress
		}
	}
	done, held := 0, 0
	for i := range w.waiting {
		held += len(w.waiting[i].cell)
	}
	for ; done < len(w.waiting); done++ {
		p := &w.waiting[done]
		size := len(p.cell)
		if !w.complete(p, held > maxHeldPages) {
			break
		}
		held -= size
		if err := w.write(p.cell); err != nil {
			return err
		}
	}
	w.waiting = slices.Delete(w.waiting, 0, done)
	return nil
}

// maxHeldPages is how many bytes of pages are in memory at most, until it is known whether the file
// pays, or where their byte strings are.
const maxHeldPages = 4 << 20

// complete adds the pieces to a page, if all of them are known. If force is true, it does not wait for
// pieces: the page then does not say where the byte strings are.
func (w *rowFileWriter) complete(p *waitingPage, force bool) bool {
	end := p.first + int64(p.rows)
	for _, col := range p.far {
		if w.pieces[col].rows < end && !force {
			return false
		}
	}
	for _, col := range p.far {
		list := []rowpage.Piece{{Rows: p.rows, Offset: -1}}
		if w.pieces[col].rows >= end {
			w.pieces[col].take(p.first) // of pages that do not need them
			if all := w.pieces[col].take(end); len(all) <= rowpage.MaxPieces {
				list = all
			}
		}
		p.cell = rowpage.AppendPieces(p.cell, list)
	}
	p.cell = rowpage.Finish(p.cell)
	return true
}

// take removes the pieces before a row, which is the first row of a page or follows its last row, and
// returns them.
func (p *pieces) take(row int64) []rowpage.Piece {
	n := 0
	for ; n < len(p.list) && p.first < row; n++ {
		p.first += int64(p.list[n].Rows)
	}
	taken := p.list[:n:n]
	p.list = p.list[n:]
	return taken
}

// newRowFile begins a row file of a rowset with columns in the given blocks.
func newRowFile(s *schema.Schema, blocks []ColumnBlock, mode schema.RowFile) *rowFileWriter {
	w := &rowFileWriter{schema: s, blocks: blocks, mode: mode, vector: batch.Vector{Type: schema.Binary},
		pages: rowpage.NewBuilder(rowpage.NewFormat(s.Columns), mode == schema.FullRowFile, s.Keys)}
	for i := range s.Columns {
		w.rest = append(w.rest, &batch.Vector{Type: s.Columns[i].Type})
	}
	w.pieces = make([]pieces, len(s.Columns))
	return w
}

// wanted reports whether create is to be called.
func (w *rowFileWriter) wanted() bool {
	return w.file == nil && w.mode != schema.NoRowFile && w.rows > 0 &&
		(w.mode == schema.FullRowFile || w.decided || rowpage.Eager.Load())
}

// create begins the file.
func (w *rowFileWriter) create(sink block.Sink) error {
	file, err := cfile.NewWriter(sink,
		cfile.WriterOptions{Type: schema.Binary, Encoding: schema.Plain, Compression: schema.NoCompression,
			BlockBytes: 1, IndexBlockBytes: rowFileIndexBytes, PositionalIndex: true,
			Keyed: true, FullIndexKeys: true, Exact: true})
	if err != nil {
		return err
	}
	file.AddMetadata(rowFilePair, appendRowColumns(nil, w.schema, w.blocks, w.pageRows))
	w.file = file
	for _, cell := range w.early {
		if err := w.write(cell); err != nil {
			return err
		}
	}
	w.early = nil
	return nil
}

// write appends the cell of a page to the file, or keeps it until the file is created.
func (w *rowFileWriter) write(cell []byte) error {
	if w.file == nil {
		w.early = append(w.early, cell)
		return nil
	}
	w.vector.Reset(1)
	w.vector.Bytes[0] = cell
	return w.file.Append(&w.vector)
}

// end makes the last page, after the columns are finished. Then the file is created if it is wanted,
// and finished.
func (w *rowFileWriter) end() error {
	if w.mode != schema.NoRowFile {
		w.flush()
	}
	return w.settle()
}

// finish writes the end of the file.
func (w *rowFileWriter) finish() error {
	if words := w.pages.Words().Append(nil); len(words) > 0 {
		w.file.AddMetadata(rowWordsPair, words)
	}
	return w.file.Finish()
}

// append adds rows. There is a vector for each column of the schema, in its order. Errors:
// ErrSchema for vectors that the writers of the columns refuse too.
func (w *rowFileWriter) append(keys [][]byte, vectors []*batch.Vector) error {
	if w.mode == schema.NoRowFile {
		return nil
	}
	for i, v := range vectors {
		if err := w.check(&w.schema.Columns[i], v); err != nil {
			return err
		}
	}
	for from := 0; from < len(keys); {
		held := w.rest[0].Len
		if held == 0 {
			w.separator = append(w.separator[:0], cfile.Separator(w.lastKey, keys[from])...)
		}
		to := min(from+w.pageRows-held, len(keys))
		w.lastKey = append(w.lastKey[:0], keys[to-1]...)
		if to-from == w.pageRows {
			w.page(vectors, from, to)
		} else if w.hold(vectors, from, to); held+to-from == w.pageRows {
			w.flush()
		}
		from = to
	}
	return nil
}

// setPageRows decides how many rows a page has, by the first rows. It is called before append.
func (w *rowFileWriter) setPageRows(vectors []*batch.Vector) {
	if w.pageRows > 0 || w.mode == schema.NoRowFile {
		return
	}
	n := min(vectors[0].Len, mostPageRows)
	numbers, strings := w.plainBytes(vectors, 0, n, true)
	size, least := int(numbers/packedNumbers+strings), 1
	if numbers/packedNumbers > strings {
		least = leastPageRows
	}
	w.pageRows = mostPageRows
	for w.pageRows > least && size*w.pageRows > pageBytes*n {
		w.pageRows /= 2
	}
}

// plainBytes returns the bytes of rows [from, to) without packing: of the columns that may be in
// pages, and if far is true, of the columns to whose byte strings pages refer.
func (w *rowFileWriter) plainBytes(vectors []*batch.Vector, from, to int, far bool) (numbers, strings int64) {
	for i, v := range vectors {
		if width := v.Type.Width(); width > 0 {
			numbers += int64(width * (to - from))
		} else if w.pages.Has(i) || far && w.pages.Wants(i) {
			for k := from; k < to; k++ {
				strings += int64(min(len(v.Cell(k)), rowpage.MaxString))
			}
		}
	}
	return numbers, strings
}

// hold copies rows, which are fewer than a page has.
func (w *rowFileWriter) hold(vectors []*batch.Vector, from, to int) {
	for i, v := range vectors {
		rest := w.rest[i]
		at := rest.Len
		rest.AppendRun(v, from, to)
		if v.Type.Width() > 0 {
			continue
		}
		for k := at; k < rest.Len; k++ {
			cell := rest.Bytes[k]
			switch {
			case cell == nil:
			case !w.pages.Wants(i):
				rest.Bytes[k] = []byte{}
			default:
				if i >= w.schema.Keys && len(cell) > rowpage.MaxString {
					continue // too long for a page, so only the length is used
				}
				start := len(w.heap)
				w.heap = append(w.heap, cell...)
				rest.Bytes[k] = w.heap[start:len(w.heap):len(w.heap)]
			}
		}
	}
}

// flush makes a page of the rows that are held.
func (w *rowFileWriter) flush() {
	n := w.rest[0].Len
	if n == 0 {
		return
	}
	w.page(w.rest, 0, n)
	for _, v := range w.rest {
		v.Reset(0)
	}
	w.heap = w.heap[:0]
}

// page adds a page.
func (w *rowFileWriter) page(vectors []*batch.Vector, from, to int) {
	cell := cfile.AppendKeyed(nil, w.separator, nil)
	before := len(cell)
	cell = w.pages.Append(cell, vectors, from, to)
	w.waiting = append(w.waiting, waitingPage{cell: cell, first: w.rows, rows: to - from,
		far: slices.Clone(w.pages.Pieces())})
	w.rows += int64(to - from)
	if w.file == nil && w.mode == schema.AutoRowFile {
		w.packed += int64(len(cell) - before)
		numbers, strings := w.plainBytes(vectors, from, to, false)
		w.plain += numbers + strings
	}
}

// pays reports whether the file is worth its bytes.
func (w *rowFileWriter) pays() bool {
	in, plain := 0, w.plain
	for i := range w.schema.Columns {
		switch p := &w.pieces[i]; {
		case w.pages.Has(i):
			in++
		case 2*p.plain >= p.rows && p.rows > 0:
			in, plain = in+1, plain+p.bytes
		}
	}
	return 2*in >= len(w.schema.Columns) && 2*w.packed <= plain && w.packed <= w.columnBytes() ||
		rowpage.Eager.Load()
}

// columnBytes returns about how many bytes the rows in pages take in the files of the columns. Columns
// that compress so well that no cblock is full yet count as nothing.
func (w *rowFileWriter) columnBytes() int64 {
	n := 0.0
	for i := range w.columns {
		if rows, bytes := w.columns[i].w.Closed(); rows > 0 {
			n += float64(bytes) / float64(rows)
		}
	}
	return int64(n * float64(w.rows))
}

// check returns an error for a vector that the writer of a column refuses too.
func (w *rowFileWriter) check(c *schema.Column, v *batch.Vector) error {
	err := v.Validate()
	switch {
	case err != nil:
	case v.Type.Physical() != c.Type.Physical() || v.Elements != nil:
		err = fmt.Errorf("vector of %s", v.Type)
	case !c.Nullable && v.Present != nil && v.Present.CountRange(0, v.Len) < v.Len:
		err = errors.New("NULL in a column that is not nullable")
	default:
		return nil
	}
	return fmt.Errorf("row file: column %q: %w: %w", c.Name, err, fault.ErrSchema)
}
