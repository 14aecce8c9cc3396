package rewrite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// disk stores blocks in memory.
type disk struct {
	blocks map[block.ID]*block.Memory
	last   block.ID
}

func newDisk() *disk { return &disk{blocks: map[block.ID]*block.Memory{}} }

func (d *disk) Create() (block.Sink, error) {
	d.last++
	return &block.Memory{Number: d.last}, nil
}

func (d *disk) Finish(s block.Sink) error {
	m := s.(*block.Memory)
	d.blocks[m.Number] = m
	return nil
}

// noDisk cannot create blocks.
type noDisk struct{}

var errNoDisk = errors.New("no disk")

func (noDisk) Create() (block.Sink, error) { return nil, errNoDisk }
func (noDisk) Finish(block.Sink) error     { return errNoDisk }

type opened struct{ *block.Memory }

func (opened) Close() error { return nil }

func (d *disk) OpenBlock(id block.ID) (rowset.Block, error) {
	m := d.blocks[id]
	if m == nil {
		return nil, fmt.Errorf("block %d: %w", id, fault.ErrNotFound)
	}
	return opened{m}, nil
}

// testSchema is the schema of Kudu's compaction tests: a string key, a value, a nullable value.
var testSchema = mustSchema([]schema.Column{
	{ID: 10, Name: "key", Type: schema.String},
	{ID: 11, Name: "val", Type: schema.Int32},
	{ID: 12, Name: "nullable", Type: schema.Int32, Nullable: true},
}, 1)

func mustSchema(columns []schema.Column, keys int) *schema.Schema {
	s, err := schema.New(columns, keys)
	if err != nil {
		panic(err)
	}
	return s
}

func int32Cell(v int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }

// null means NULL among the ints of the short forms below.
const null = -99

func cellOf(v int) []byte {
	if v == null {
		return nil
	}
	return int32Cell(v)
}

// set returns a change list that sets val and nullable.
func set(kind change.Kind, val, nullable int) change.List {
	l := change.AppendColumn(change.AppendUpdateHeader(nil, kind), 11, cellOf(val))
	return change.AppendColumn(l, 12, cellOf(nullable))
}

// changed returns a change of the only row of an input.
func changed(ts mvcc.Timestamp, list change.List) change.Delta {
	return change.Delta{TS: ts, List: list}
}

func deletion(ts mvcc.Timestamp) change.Delta { return changed(ts, change.AppendDelete(nil)) }

// listInput returns copies of prepared rows, and overwrites each copy at the next call.
type listInput struct {
	rows []*change.Rows
	last *change.Rows
	err  error // at the end
	next func()
}

func (l *listInput) Next() (*change.Rows, error) {
	if l.next != nil {
		l.next()
	}
	if l.last != nil {
		spoil(l.last)
		l.last = nil
	}
	if len(l.rows) == 0 {
		return nil, l.err
	}
	l.last, l.rows = clone(l.rows[0]), l.rows[1:]
	return l.last, nil
}

// clone returns a copy of rows that shares no memory with them.
func clone(r *change.Rows) *change.Rows {
	out := &change.Rows{Batch: batch.New(testSchema.Columns, 0)}
	out.Batch.Columns, out.Batch.Len = make([]*batch.Vector, len(r.Batch.Columns)), r.Batch.Len
	for i, v := range r.Batch.Columns {
		c := batch.NewVector(v.Type, 0)
		for k := range v.Len {
			c.AppendCell(bytes.Clone(v.Cell(k)))
		}
		out.Batch.Columns[i] = c
	}
	for _, key := range r.Keys {
		out.Keys = append(out.Keys, bytes.Clone(key))
	}
	lists := func(deltas []change.Delta) (out []change.Delta) {
		for _, d := range deltas {
			d.List = bytes.Clone(d.List)
			out = append(out, d)
		}
		return out
	}
	out.Undo, out.Redo = lists(r.Undo), lists(r.Redo)
	return out
}

// spoil overwrites rows that are no longer valid.
func spoil(r *change.Rows) {
	fill := func(b []byte) {
		for i := range b {
			b[i] = 0xee
		}
	}
	for _, v := range r.Batch.Columns {
		fill(v.Data)
		for _, cell := range v.Bytes {
			fill(cell)
		}
	}
	for _, key := range r.Keys {
		fill(key)
	}
	for _, list := range [2][]change.Delta{r.Undo, r.Redo} {
		for _, d := range list {
			fill(d.List)
		}
		clear(list)
	}
}

// oneRow returns an input of one row of testSchema.
func oneRow(key string, val, nullable int, undo, redo []change.Delta) *listInput {
	rows := &change.Rows{Batch: batch.New(testSchema.Columns, 0), Keys: [][]byte{[]byte(key)}, Undo: undo, Redo: redo}
	for i, cell := range [][]byte{[]byte(key), cellOf(val), cellOf(nullable)} {
		rows.Batch.Columns[i].AppendCell(cell)
	}
	rows.Batch.Len = 1
	return &listInput{rows: []*change.Rows{rows}}
}

// result is the output of a Run.
type result struct {
	stats Stats
	disk  *disk
	rows  []*rowset.Metadata
	sets  []*rowset.DiskRowSet
}

// run rewrites inputs into rowsets of about targetBytes; 0 means one.
func run(s *schema.Schema, floor mvcc.Timestamp, targetBytes int64, inputs ...Input) (*result, error) {
	return runOn(newDisk(), s, mvcc.Retained{Floor: floor}, targetBytes, inputs...)
}

func runOn(d *disk, s *schema.Schema, retained mvcc.Retained, targetBytes int64, inputs ...Input) (*result, error) {
	res := &result{disk: d}
	next := uint64(0)
	w := rowset.NewRollingWriter(res.disk, s, func() uint64 { next++; return next }, targetBytes)
	var err error
	if res.stats, err = Run(context.Background(), Job{Schema: s, Inputs: inputs, Retained: retained, Writer: w}); err != nil {
		return nil, err
	}
	if res.rows, err = w.Finish(); err != nil {
		return nil, err
	}
	for _, row := range res.rows {
		d, err := rowset.Open(s, row, rowset.Options{Blocks: res.disk})
		if err != nil {
			return nil, err
		}
		if id, err := d.CheckFiles(); err != nil {
			return nil, fmt.Errorf("block %d: %w", id, err)
		}
		if err := d.CheckRowFile(); err != nil {
			return nil, err
		}
		res.sets = append(res.sets, d)
	}
	return res, nil
}

// histories reads all rows of the result with their versions; i is the index of a row in rows.
func (res *result) histories(fn func(rows *change.Rows, i int, undo, redo []change.Delta) error) error {
	for _, d := range res.sets {
		h, err := d.Histories(mvcc.Everything)
		if err != nil {
			return err
		}
		for {
			rows, err := h.Next()
			if err != nil {
				return err
			}
			if rows == nil {
				break
			}
			undo, redo := rows.Undo, rows.Redo
			for i := range rows.Keys {
				if err := fn(rows, i, ofRow(&undo, i), ofRow(&redo, i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// ofRow removes the changes of row i from the front of list and returns them.
func ofRow(list *[]change.Delta, i int) []change.Delta {
	n := 0
	for n < len(*list) && (*list)[n].Row == uint32(i) {
		n++
	}
	out := (*list)[:n]
	*list = (*list)[n:]
	return out
}

// text formats rows of testSchema like the spec: base, UNDO and REDO.
func (res *result) text() string {
	var b strings.Builder
	err := res.histories(func(rows *change.Rows, i int, undo, redo []change.Delta) error {
		fmt.Fprintf(&b, "%s val=%s nullable=%s; UNDO %s; REDO %s\n", rows.Keys[i],
			number(rows.Batch.Columns[1].Cell(i)),
			number(rows.Batch.Columns[2].Cell(i)), deltaText(undo), deltaText(redo))
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return b.String()
}

func number(cell []byte) string {
	if cell == nil {
		return "NULL"
	}
	return fmt.Sprint(int32(binary.LittleEndian.Uint32(cell)))
}

func deltaText(deltas []change.Delta) string {
	var parts []string
	for _, d := range deltas {
		part := fmt.Sprintf("@%d %s", uint64(d.TS),
			map[change.Kind]string{change.Update: "SET", change.Delete: "DELETE",
				change.Reinsert: "REINSERT"}[d.List.Kind()])
		sep := " "
		for r := d.List.Columns(); ; {
			id, cell, ok := r.Next()
			if !ok {
				break
			}
			part += fmt.Sprintf("%s%s=%s", sep, map[schema.ColumnID]string{11: "val", 12: "nullable"}[id], number(cell))
			sep = ","
		}
		parts = append(parts, part)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// at reads all rows of the result as of snap: encoded key to cells.
func (res *result) at(s *schema.Schema, snap mvcc.Snapshot) (map[string][][]byte, error) {
	all := make([]int, len(s.Columns))
	for i := range all {
		all[i] = i
	}
	out := map[string][][]byte{}
	for _, d := range res.sets {
		req, err := scan.NewRequest(scan.Options{Schema: s, Columns: all, Snapshot: snap, Keys: true})
		if err != nil {
			return nil, err
		}
		it, err := d.NewIterator(req)
		if err != nil {
			return nil, err
		}
		for it.Next() {
			b := it.Batch()
			for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
				var cells [][]byte
				for _, v := range b.Columns {
					cells = append(cells, bytes.Clone(v.Cell(i)))
				}
				key := string(it.Keys()[i])
				if out[key] != nil {
					return nil, fmt.Errorf("duplicate key %x", key)
				}
				out[key] = cells
			}
		}
		if err := it.Close(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func encodeKey(s *schema.Schema, cells [][]byte) []byte {
	return keyenc.NewEncoder(s).AppendKey(nil, cells)
}

func sameCells(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) || !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
