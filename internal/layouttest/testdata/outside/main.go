// Program outside writes and reads back a file of each kind from another module, with the public
// packages alone.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

const rows = 1000

func main() {
	log.SetFlags(0)
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"cfile", columnFile}, {"bloom", bloomFile}, {"delta", deltaFile}, {"rowset and block store", rowSet}, {"memrowset", memRowSet},
		{"compaction", policy},
	} {
		if err := c.run(); err != nil {
			log.Fatalf("%s: %v", c.name, err)
		}
		fmt.Println(c.name, "ok")
	}
}

func numbers() *batch.Vector {
	v := batch.NewVector(schema.Int64, rows)
	for i := range batch.Values[int64](v) {
		batch.Values[int64](v)[i] = int64(10 * i)
	}
	return v
}

func columnFile() error {
	file := &block.Memory{}
	w, err := cfile.NewWriter(file, cfile.WriterOptions{Type: schema.Int64, PositionalIndex: true, ValueIndex: true})
	if err != nil {
		return err
	}
	if err := w.Append(numbers()); err != nil {
		return err
	}
	if err := w.Finish(); err != nil {
		return err
	}
	r, err := cfile.Open(file, cfile.ReaderOptions{Cache: cache.New(1 << 20)})
	if err != nil {
		return err
	}
	v := batch.NewVector(schema.Int64, 0)
	if n, err := r.NewColumnReader().ReadVector(433, 3, v); err != nil || n != 3 || batch.Values[int64](v)[0] != 4330 {
		return fmt.Errorf("%d cells, %v", n, err)
	}
	return nil
}

func bloomFile() error {
	file := &block.Memory{}
	w, err := bloom.NewWriter(file, bloom.Options{})
	if err != nil {
		return err
	}
	for i := range rows {
		if err := w.Add(fmt.Appendf(nil, "key %04d", i)); err != nil {
			return err
		}
	}
	if err := w.Finish(); err != nil {
		return err
	}
	r, err := bloom.Open(file, cfile.ReaderOptions{})
	if err != nil {
		return err
	}
	if maybe, err := r.MayContain(bloom.MakeProbe([]byte("key 0017"))); err != nil || !maybe {
		return fmt.Errorf("a key that was added: %v, %v", maybe, err)
	}
	return nil
}

func table() (*schema.Schema, error) {
	return schema.New([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}, {ID: 2, Name: "v", Type: schema.Int64}}, 1)
}

// update returns the change of column v to n.
func update(n byte) change.List {
	return change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 2, []byte{n, 0, 0, 0, 0, 0, 0, 0})
}

func deltaFile() error {
	s, err := table()
	if err != nil {
		return err
	}
	file := &block.Memory{}
	w, err := delta.NewWriter(file, false)
	if err != nil {
		return err
	}
	for row := range uint32(rows) {
		if err := w.Append(change.Delta{Row: row, TS: 7, List: update(byte(row))}); err != nil {
			return err
		}
	}
	if _, err := w.Finish(); err != nil {
		return err
	}
	r, err := delta.OpenFile(file, cfile.ReaderOptions{})
	if err != nil {
		return err
	}
	n := 0
	err = r.Changes(s, func(d change.Delta) error {
		if !bytes.Equal(d.List, update(byte(n))) {
			return fmt.Errorf("row %d: %v", d.Row, d.List)
		}
		n++
		return nil
	})
	if err != nil || n != rows {
		return fmt.Errorf("%d changes, %w", n, err)
	}
	return nil
}

// store adapts a block manager to package rowset.
type store struct{ *blockmanager.Manager }

func (s store) OpenBlock(id block.ID) (rowset.Block, error) { return s.Manager.OpenBlock(id) }

func rowSet() error {
	s, err := table()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "outside")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	options := blockmanager.Options{Dir: dir, Instance: [16]byte{1}}
	if err := blockmanager.Format(options, nil, 1); err != nil {
		return err
	}
	if err := writeRowSet(options, s); err != nil {
		return err
	}
	m, err := blockmanager.Open(options)
	if err != nil {
		return err
	}
	defer m.Close()
	return m.Rows([]byte("rowset"), func(key, value []byte) error {
		metadata, err := rowset.DecodeMetadata(value)
		if err != nil {
			return err
		}
		set, err := rowset.Open(s, metadata, rowset.Options{Blocks: store{m}, Cache: cache.New(1 << 20)})
		if err != nil {
			return err
		}
		defer set.Unref()
		request, err := scan.NewRequest(scan.Options{Schema: s, Columns: []int{0, 1}, Snapshot: mvcc.Everything})
		if err != nil {
			return err
		}
		it, err := set.NewIterator(request)
		if err != nil {
			return err
		}
		n := 0
		for it.Next() {
			it.Batch().Compact()
			n += len(batch.Values[int64](it.Batch().Columns[1]))
		}
		if err := it.Close(); err != nil || n != rows {
			return fmt.Errorf("%d rows, %w", n, err)
		}
		return nil
	})
}

func writeRowSet(options blockmanager.Options, s *schema.Schema) error {
	m, err := blockmanager.Open(options)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Writable(); err != nil {
		return err
	}
	blocks := m.NewCreation()
	w, err := rowset.NewWriter(blocks, s, 1)
	if err != nil {
		return err
	}
	in := &change.Rows{Batch: batch.New(s.Columns, rows)}
	in.Batch.Columns[0], in.Batch.Columns[1] = numbers(), numbers()
	in.Keys = change.AppendVectorKeys(nil, keyenc.NewEncoder(s), in.Batch.Columns, 0, rows)
	if err := w.Append(in); err != nil {
		return err
	}
	metadata, err := w.Finish()
	if err != nil {
		return err
	}
	if err := blocks.Sync(); err != nil {
		return err
	}
	return m.Commit(blockmanager.Edit{Created: []*blockmanager.Creation{blocks}, Put: []blockmanager.Row{{Key: []byte("rowset 1"), Value: metadata.Encode()}}})
}

func memRowSet() error {
	s, err := table()
	if err != nil {
		return err
	}
	m := memrowset.New(s, nil)
	encoder, format := keyenc.NewEncoder(s), change.NewRowFormat(s)
	cells := [][]byte{{1, 0, 0, 0, 0, 0, 0, 0}, {2, 0, 0, 0, 0, 0, 0, 0}}
	key := encoder.AppendKey(nil, cells)
	m.Insert(key, 5, 1, format.AppendRow(nil, cells))
	if image, found := m.Get(key, mvcc.Everything, nil); !found || !bytes.Equal(format.Cell(image, 1), cells[1]) {
		return fmt.Errorf("%x, %v", image, found)
	}
	return nil
}

func policy() error {
	set := compaction.RowSetInfo{ID: 1, MinKey: []byte("a"), MaxKey: []byte("z"), Bytes: 1 << 20, Rows: 10}
	other := set
	other.ID = 2
	if c := (compaction.Overlap{Depth: 2}).Pick(compaction.Layout{RowSets: []compaction.RowSetInfo{set, other}}, 1<<30); len(c.RowSets) != 2 {
		return fmt.Errorf("two rowsets over the same keys: %+v", c)
	}
	return nil
}
