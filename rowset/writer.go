package rowset

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/keydir"
	"github.com/oribi-db/oribi/schema"
)

// Creation creates and finishes the blocks that a Writer fills.
type Creation interface {
	Create() (block.Sink, error)
	Finish(block.Sink) error
}

// keyIndexBlockBytes is the size of a cblock in the key index of a compound key. Source: tablet
// spec §10.1.
const keyIndexBlockBytes = 4096

// Names of the metadata pairs that contain a rowset's bounds. File format: never change.
const (
	minKeyPair = "min_key"
	maxKeyPair = "max_key"
)

// Writer writes the files of one rowset. Not safe for concurrent use; internally it encodes columns
// in parallel.
//
// Append takes rows in key order, together with their changes. After an error the Writer must not
// be used. Source: tablet spec §10.1–§10.3.
type Writer struct {
	schema   *schema.Schema
	creation Creation
	words    *Dictionaries

	// The files, all written at the same time, since rows come once: each Append passes the rows'
	// cells, keys and changes to all of them.
	columns []output[*cfile.Writer]
	filter  output[*bloom.Writer]
	index   output[*cfile.Writer]  // compound keys only
	undo    output[*delta.Writer]  // created by the first undo
	redo    output[*delta.Writer]  // created by the first redo
	rows    output[*rowFileWriter] // see AddRowFile; w is nil before, sink is nil until the file is created
	parts   parts

	// The key directory is made at the end, when the number of rows is known.
	hashes []uint64          // of all keys, if a row file is written
	keys   *keydir.Directory // of hashes; nil if one of them found no free slot in it

	row     Metadata
	lastKey []byte

	// Memory of one Append.
	vector     *batch.Vector // the keys, for the index
	undos      []change.Delta
	withBirths []change.Delta // of AppendStored

	stored []storedCells // by column; nil before the first AppendStored
}

// output is a file being written and the block that it is written to.
type output[W any] struct {
	sink block.Sink
	w    W
}

// NewWriter starts a rowset with the given number.
func NewWriter(c Creation, s *schema.Schema, id uint64) (*Writer, error) {
	return newWriter(c, s, id, nil)
}

func newWriter(c Creation, s *schema.Schema, id uint64, words *Dictionaries) (*Writer, error) {
	w := &Writer{schema: s, creation: c, words: words, vector: &batch.Vector{Type: schema.Binary}}
	w.row.ID, w.row.LastDurableDMS = id, -1
	for i := range s.Columns {
		p, err := newColumnOutput(c, s, i, columnOptions(s, i, words))
		if err != nil {
			return nil, err
		}
		w.columns = append(w.columns, p)
		w.row.Columns = append(w.row.Columns, ColumnBlock{ID: s.Columns[i].ID, Block: p.sink.ID()})
	}
	var err error
	w.filter, err = newOutput(c, func(sink block.Sink) (*bloom.Writer, error) {
		return bloom.NewWriter(sink, bloom.Options{})
	})
	if err != nil {
		return nil, err
	}
	w.row.Bloom = w.filter.sink.ID()
	w.parts = newParts(len(w.columns) + otherParts)
	if s.SingleKey() {
		return w, nil
	}
	w.index, err = newOutput(c, func(sink block.Sink) (*cfile.Writer, error) {
		return cfile.NewWriter(sink,
			cfile.WriterOptions{Type: schema.Binary, Encoding: schema.Prefix, Compression: schema.LZ4,
				BlockBytes: keyIndexBlockBytes, ValueIndex: true, Exact: true})
	})
	if err != nil {
		return nil, err
	}
	w.row.KeyIndex = w.index.sink.ID()
	return w, nil
}

// AddRowFile makes w also write a row file, as the mode says. It is called before the first Append.
func (w *Writer) AddRowFile(mode schema.RowFile) {
	if mode == schema.NoRowFile {
		return
	}
	w.rows.w = newRowFile(w.schema, w.row.Columns, mode)
	w.rows.w.columns = w.columns
	for i := w.schema.Keys; i < len(w.columns); i++ {
		if t := w.schema.Columns[i].Type; t.Variable() && t != schema.Array {
			w.rows.w.follow(i, w.columns[i].w)
		}
	}
}

// createRowFile creates the row file if it is time. rows are about to be appended.
func (w *Writer) createRowFile(rows *change.Rows) error {
	if !w.NeedsCells() {
		return nil
	}
	w.rows.w.setPageRows(rows.Batch.Columns)
	err := w.rows.w.settle()
	if err == nil {
		err = createRowFile(w.creation, &w.rows)
	}
	return err
}

// finishRowFile finishes the row file, if w writes one, after the columns.
func (w *Writer) finishRowFile() error {
	if err := finishRowFile(w.creation, &w.rows); err != nil || w.rows.sink == nil {
		return err
	}
	w.row.RowFile = w.rows.sink.ID()
	return nil
}

// finishRowFile finishes a row file, and creates it before if it is time, unless w is nil.
func finishRowFile(c Creation, o *output[*rowFileWriter]) error {
	if o.w == nil {
		return nil
	}
	if err := o.w.end(); err != nil {
		return err
	}
	if err := createRowFile(c, o); err != nil || o.sink == nil {
		return err
	}
	return o.w.finish()
}

// createRowFile creates the block of a row file if it is time, unless w is nil.
func createRowFile(c Creation, o *output[*rowFileWriter]) error {
	if o.w == nil || !o.w.wanted() {
		return nil
	}
	p, err := newOutput(c, func(sink block.Sink) (*rowFileWriter, error) { return o.w, o.w.create(sink) })
	if err == nil {
		*o = p
	}
	return err
}

// NeedsCells reports whether AppendStored needs the cells of rows, for the row file.
func (w *Writer) NeedsCells() bool { return w.rows.w != nil && w.rows.w.mode != schema.NoRowFile }

// hasDirectory reports whether w writes a key directory.
func (w *Writer) hasDirectory() bool { return w.rows.w != nil && w.rows.w.mode == schema.FullRowFile }

func newOutput[W any](c Creation, make func(block.Sink) (W, error)) (output[W], error) {
	sink, err := c.Create()
	if err != nil {
		return output[W]{}, err
	}
	w, err := make(sink)
	return output[W]{sink, w}, err
}

// Rows returns the number of rows appended so far.
func (w *Writer) Rows() int64 { return w.row.Rows }

// Bytes returns the approximate size of all files so far.
func (w *Writer) Bytes() int64 {
	var n int64
	for _, s := range w.sinks() {
		n += s.Size()
	}
	if w.hasDirectory() {
		n += keydir.Size(w.row.Rows)
	}
	return n
}

// Append adds rows after those added so far, with their changes. Keys ascend; within a row, undos
// are newest first and redos oldest first. rows.Batch has all columns of the schema; its selection
// is ignored.
//
// Errors: ErrSchema for columns that do not fit the schema or the number of keys, and for malformed
// vectors; ErrCorrupt for cells that are not valid arrays; errors of the sinks.
func (w *Writer) Append(rows *change.Rows) error {
	if len(rows.Keys) == 0 {
		return nil
	}
	if err := w.checkColumns(rows); err != nil {
		return fmt.Errorf("rowset %d: %w: %w", w.row.ID, err, fault.ErrSchema)
	}
	first, err := w.begin(rows)
	if err != nil {
		return err
	}
	return w.append(rows, nil, w.takeBirths(rows.Undo, first), first)
}

// begin checks that rows can be appended and returns the row ID of the first.
func (w *Writer) begin(rows *change.Rows) (first uint32, err error) {
	if invariant.Enabled {
		w.checkOrder(rows.Keys)
	}
	if w.row.Rows+int64(len(rows.Keys)) > MaxRows {
		return 0, fmt.Errorf("rowset %d: more than %d rows", w.row.ID, int64(MaxRows))
	}
	return uint32(w.row.Rows), nil
}

// append adds rows, with these undos, to all files; first is the row ID of the first. stored is nil,
// or where their cells are stored.
func (w *Writer) append(rows *change.Rows, stored *StoredRows, undos []change.Delta, first uint32) error {
	if err := w.createDeltas(undos, rows.Redo); err != nil {
		return err
	}
	if err := w.createRowFile(rows); err != nil {
		return err
	}
	err := w.parts.run(func(i int) error {
		if i < len(w.columns) {
			return w.appendCells(i, rows, stored)
		}
		return w.appendPart(i-len(w.columns), rows, undos, first)
	})
	if err != nil {
		return err
	}
	if w.row.Rows == 0 {
		w.row.MinKey = bytes.Clone(rows.Keys[0])
	}
	w.lastKey = append(w.lastKey[:0], rows.Keys[len(rows.Keys)-1]...)
	w.row.Rows += int64(len(rows.Keys))
	w.row.LiveRows += int64(len(rows.Keys)) - int64(countDeletes(rows.Redo))
	return nil
}

// The parts of a rowset after its columns.
const (
	filterPart = iota
	indexPart
	rowFilePart
	directoryPart
	deltaPart
	otherParts
)

// appendPart adds rows, with these undos, to one of the parts after the columns; first is the row ID
// of the first.
func (w *Writer) appendPart(i int, rows *change.Rows, undos []change.Delta, first uint32) error {
	switch i {
	case filterPart:
		return w.filter.w.AddAll(rows.Keys)
	case indexPart:
		return w.appendIndex(rows.Keys)
	case rowFilePart:
		if !w.NeedsCells() {
			return nil
		}
		return w.rows.w.append(rows.Keys, rows.Batch.Columns)
	case directoryPart:
		if !w.hasDirectory() {
			return nil
		}
		for _, key := range rows.Keys {
			w.hashes = append(w.hashes, bloom.MakeProbe(key).Hash())
		}
		return nil
	}
	if err := appendDeltas(w.undo.w, undos, first); err != nil {
		return err
	}
	return appendDeltas(w.redo.w, rows.Redo, first)
}

// finishPart finishes the files of one of the parts.
func (w *Writer) finishPart(i int) (err error) {
	if i < len(w.columns) {
		if err := w.flushStored(i); err != nil {
			return inColumn(&w.schema.Columns[i], err)
		}
		err := w.columns[i].w.Finish()
		w.words.note(w.schema.Columns[i].ID, w.columns[i].w)
		return err
	}
	switch i - len(w.columns) {
	case filterPart:
		return w.filter.w.Finish()
	case indexPart:
		if w.index.sink != nil {
			err = w.index.w.Finish()
		}
		return err
	case rowFilePart:
		return nil // see finishRowFile
	case directoryPart:
		w.buildDirectory()
		return nil
	}
	for _, p := range []output[*delta.Writer]{w.undo, w.redo} {
		if err == nil && p.sink != nil {
			_, err = p.w.Finish()
		}
	}
	return err
}

// checkColumns checks the number, types and lengths of the columns. The writers of the files
// validate the vectors, except vectors of arrays, which are unpacked before.
func (w *Writer) checkColumns(rows *change.Rows) error {
	if rows.Batch == nil || len(rows.Batch.Columns) != len(w.schema.Columns) {
		return fmt.Errorf("%d keys without a batch of all %d columns", len(rows.Keys), len(w.schema.Columns))
	}
	for i, v := range rows.Batch.Columns {
		c := &w.schema.Columns[i]
		if v == nil || v.Len != len(rows.Keys) {
			return fmt.Errorf("column %q: not a vector of %d cells, as many as keys", c.Name, len(rows.Keys))
		}
		if c.Type != schema.Array {
			continue
		}
		if v.Type != schema.Array || v.Elements != nil {
			return fmt.Errorf("column %q: a vector of %s, want cells of arrays", c.Name, v.Type)
		}
		if err := v.Validate(); err != nil {
			return fmt.Errorf("column %q: %w", c.Name, err)
		}
	}
	return nil
}

func (w *Writer) checkOrder(keys [][]byte) {
	last := w.lastKey
	for i, k := range keys {
		if (i > 0 || w.row.Rows > 0) && bytes.Compare(last, k) >= 0 {
			panic(fmt.Sprintf("rowset: key %x after %x", k, last))
		}
		last = k
	}
}

// appendIndex adds keys to the key index, if the rowset has one.
func (w *Writer) appendIndex(keys [][]byte) error {
	if w.index.sink == nil {
		return nil
	}
	w.vector.Reset(0)
	w.vector.Len, w.vector.Bytes = len(keys), keys
	err := w.index.w.Append(w.vector)
	w.vector.Bytes = nil
	return err
}

// createDeltas creates the files of undos and redos when the first of them come.
func (w *Writer) createDeltas(undos, redos []change.Delta) (err error) {
	create := func(undo bool) (output[*delta.Writer], []block.ID, error) {
		p, err := newOutput(w.creation, func(sink block.Sink) (*delta.Writer, error) {
			return delta.NewWriter(sink, undo)
		})
		if err != nil {
			return p, nil, err
		}
		return p, []block.ID{p.sink.ID()}, nil
	}
	if len(undos) > 0 && w.undo.sink == nil {
		if w.undo, w.row.Undo, err = create(true); err != nil {
			return err
		}
	}
	if len(redos) > 0 && w.redo.sink == nil {
		if w.redo, w.row.Redo, err = create(false); err != nil {
			return err
		}
		w.row.LastDurableDMS = 0
	}
	for _, list := range [2][]change.Delta{undos, redos} {
		for i := range list {
			w.row.MaxTimestamp = max(w.row.MaxTimestamp, list[i].TS)
		}
	}
	return nil
}

// appendDeltas adds changes whose rows are relative to first.
func appendDeltas(w *delta.Writer, list []change.Delta, first uint32) error {
	for _, d := range list {
		d.Row += first
		if err := w.Append(d); err != nil {
			return err
		}
	}
	return nil
}

// countDeletes returns the number of rows whose last redo is a DELETE.
func countDeletes(redo []change.Delta) int {
	n := 0
	for i, d := range redo {
		if (i+1 == len(redo) || redo[i+1].Row != d.Row) && d.List.Kind() == change.Delete {
			n++
		}
	}
	return n
}

// Finish finishes all files and returns the rowset's metadata, in which the caller sets the
// included LSN. It is an error if there are no rows.
func (w *Writer) Finish() (*Metadata, error) {
	if w.row.Rows == 0 {
		return nil, errors.New("rowset: finished without rows")
	}
	w.row.MaxKey = bytes.Clone(w.lastKey)
	bounds := w.index.w
	if w.schema.SingleKey() {
		bounds = w.columns[0].w
	}
	addBounds(bounds, &w.row)
	if err := w.parts.run(w.finishPart); err != nil {
		return nil, err
	}
	if err := w.finishRowFile(); err != nil {
		return nil, err
	}
	sinks := w.sinks()
	if w.keys != nil {
		sink, err := w.writeDirectory()
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, sink)
		w.row.KeyDirectory, w.row.KeyDirectoryBytes = sink.ID(), sink.Size()
	}
	for _, sink := range sinks {
		if err := w.creation.Finish(sink); err != nil {
			return nil, err
		}
		w.row.Bytes += sink.Size()
	}
	if w.rows.sink != nil {
		w.row.RowFileBytes = w.rows.sink.Size()
	}
	row := w.row
	return &row, nil
}

// addBounds adds the bounds of a rowset to its key file.
func addBounds(w *cfile.Writer, m *Metadata) {
	w.AddMetadata(minKeyPair, m.MinKey)
	w.AddMetadata(maxKeyPair, m.MaxKey)
}

// sinks returns the blocks created so far.
func (w *Writer) sinks() []block.Sink {
	sinks := make([]block.Sink, 0, len(w.columns)+otherParts+1)
	for i := range w.columns {
		sinks = append(sinks, w.columns[i].sink)
	}
	for _, s := range []block.Sink{w.filter.sink, w.index.sink, w.rows.sink, w.undo.sink, w.redo.sink} {
		if s != nil {
			sinks = append(sinks, s)
		}
	}
	return sinks
}

// CheckBounds compares the bounds in the metadata with those in the key file.
func (d *DiskRowSet) CheckBounds() error {
	index, err := d.KeyFile()
	if err != nil {
		return err
	}
	for name, want := range map[string][]byte{minKeyPair: d.Metadata().MinKey, maxKeyPair: d.Metadata().MaxKey} {
		if got, ok := index.Metadata(name); !ok || !bytes.Equal(got, want) {
			return fault.Corruptf("rowset %d: %s is %x in the key file, %x in the metadata", d.Metadata().ID,
				name, got, want)
		}
	}
	return nil
}
