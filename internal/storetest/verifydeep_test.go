package storetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/keydir"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

const deepDir = "/deep"

// deepRows is the number of rows of each rowset of deepStore.
const deepRows = 40

// deepStore returns a closed store with one table of two rowsets, which have all kinds of files and
// the same values in column v. The second has two redo files with updates of row 3, and the first a
// redo that deletes row 5.
func deepStore(t *testing.T) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	store, err := oribi.Open(deepDir, &oribi.Options{FS: mem, Manual: true})
	must.Do(t, err)
	columns := must.Get(schema.New([]schema.Column{
		{Name: "a", Type: schema.Int64}, {Name: "b", Type: schema.String},
		{Name: "v", Type: schema.Int64, Nullable: true, Encoding: schema.Plain, Compression: schema.NoCompression},
	}, 2))(t)
	table := must.Get(store.CreateTable("t", columns, oribi.RowFile(schema.FullRowFile)))(t)
	must := func(err error) {
		t.Helper()
		must.Do(t, err)
	}
	write := func(do func(b *oribi.Batch)) {
		t.Helper()
		b := store.NewBatch()
		do(b)
		_, err := b.Commit(t.Context())
		must(err)
	}
	row := func(a, v int) oribi.Row { return oribi.Row{"a": a, "b": fmt.Sprint("b", a), "v": v} }
	for set := range 2 {
		for i := range deepRows {
			write(func(b *oribi.Batch) { b.Insert(table, row(1000*set+i, 7+i)) })
		}
		must(table.Flush(t.Context()))
	}
	for v := range 2 {
		write(func(b *oribi.Batch) { b.Update(table, row(1003, 500+v)) })
		_, err := table.FlushDeltas(t.Context())
		must(err)
	}
	write(func(b *oribi.Batch) { b.Delete(table, oribi.Row{"a": 5, "b": "b5"}) })
	_, err = table.FlushDeltas(t.Context())
	must(err)
	must(store.Close())
	return mem
}

// planter makes a closed store wrong, by commits of its block manager: all checksums are right.
type planter struct {
	t     *testing.T
	m     *blockmanager.Manager
	c     *blockmanager.Creation
	edit  blockmanager.Edit
	table *meta.Table
	sets  []*rowset.Metadata
}

func (p *planter) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// plant lets change change the metadata of the store, and makes blocks.
func plant(t *testing.T, mem *vfs.Mem, change func(p *planter)) []blockmanager.BlockLocation {
	t.Helper()
	names, err := files.Files(mem, filepath.Join(deepDir, "data"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	page := must.Get(files.ReadFile(mem, names[0]))(t)
	o := blockmanager.Options{FS: mem, Dir: deepDir}
	copy(o.Instance[:], page[20:]) // of the header page
	m, err := blockmanager.Open(o)
	p := &planter{t: t, m: m}
	p.must(err)
	p.must(m.Writable())
	p.c = m.NewCreation()
	p.must(m.Rows(meta.TablePrefix(), func(_, value []byte) (err error) {
		p.table, err = meta.DecodeTable(value)
		return err
	}))
	p.must(m.Rows(meta.RowSetPrefix(p.table.Number), func(_, value []byte) error {
		set, err := rowset.DecodeMetadata(value)
		p.sets = append(p.sets, set)
		return err
	}))
	change(p)
	p.must(p.c.Sync())
	p.edit.Created = []*blockmanager.Creation{p.c}
	p.edit.Put = append(p.edit.Put, blockmanager.Row{Key: meta.TableKey(p.table.Number), Value: p.table.Encode()})
	for _, set := range p.sets {
		p.edit.Put = append(p.edit.Put,
			blockmanager.Row{Key: meta.RowSetKey(p.table.Number, set.ID), Value: set.Encode()})
	}
	p.must(m.Commit(p.edit))
	places := m.BlockLocations()
	p.must(m.Close())
	return places
}

// size returns the length of a block.
func (p *planter) size(id block.ID) int64 {
	src, err := p.m.OpenBlock(id)
	p.must(err)
	defer src.Close()
	return src.Size()
}

// create makes a block.
func (p *planter) create(write func(sink block.Sink) error) (id block.ID, length int64) {
	p.t.Helper()
	sink, err := p.c.Create()
	p.must(err)
	counted := &countedSink{Sink: sink}
	p.must(write(counted))
	p.must(p.c.Finish(sink))
	return sink.ID(), counted.n
}

type countedSink struct {
	block.Sink
	n int64
}

func (s *countedSink) Write(b []byte) (int, error) {
	n, err := s.Sink.Write(b)
	s.n += int64(n)
	return n, err
}

// replace makes a block in place of *at, which set names.
func (p *planter) replace(set *rowset.Metadata, at *block.ID, write func(sink block.Sink) error) {
	p.t.Helper()
	set.Bytes -= p.size(*at)
	p.edit.Dead = append(p.edit.Dead, *at)
	id, n := p.create(write)
	*at, set.Bytes = id, set.Bytes+n
}

// bytes returns the bytes of a block.
func (p *planter) bytes(id block.ID) []byte {
	src, err := p.m.OpenBlock(id)
	p.must(err)
	defer src.Close()
	b := make([]byte, src.Size())
	_, err = src.ReadAt(b, 0)
	p.must(err)
	return b
}

type managerBlocks struct{ m *blockmanager.Manager }

func (b managerBlocks) OpenBlock(id block.ID) (rowset.Block, error) { return b.m.OpenBlock(id) }

// keys returns the encoded keys of a rowset.
func (p *planter) keys(set *rowset.Metadata) (keys [][]byte) {
	p.t.Helper()
	d, err := rowset.Open(p.table.Schema, set, rowset.Options{Blocks: managerBlocks{p.m}})
	p.must(err)
	defer d.Unref()
	for row := range set.Rows {
		key, err := d.Key(batch.Ordinal(row))
		p.must(err)
		keys = append(keys, key)
	}
	return keys
}

// directory replaces the key directory by one of these keys.
func (p *planter) directory(set *rowset.Metadata, keys [][]byte) {
	p.t.Helper()
	dir := keydir.New(int64(len(keys)), keydir.MaxGroups)
	for row, key := range keys {
		if !dir.Add(bloom.MakeProbe(key).Hash(), int64(row)) {
			p.t.Fatal("the keys do not fit a key directory")
		}
	}
	p.replace(set, &set.KeyDirectory, func(sink block.Sink) error { return dir.Write(sink, set.Bloom) })
}

// redo replaces the i-th redo file.
func (p *planter) redo(set *rowset.Metadata, i int, deltas ...change.Delta) {
	p.t.Helper()
	p.replace(set, &set.Redo[i], func(sink block.Sink) error {
		w, err := delta.NewWriter(sink, false)
		for _, d := range deltas {
			err = errors.Join(err, w.Append(d))
		}
		_, last := w.Finish()
		return errors.Join(err, last)
	})
}

// vColumn is the index of column v in Metadata.Columns and in the schema.
const vColumn = 2

// update returns a change of column v.
func (p *planter) update(row uint32, ts mvcc.Timestamp, v int64) change.Delta {
	list := change.AppendUpdateHeader(nil, change.Update)
	return change.Delta{Row: row, TS: ts,
		List: change.AppendColumn(list, p.table.Schema.Columns[vColumn].ID,
			binary.LittleEndian.AppendUint64(nil, uint64(v)))}
}

// VerifyDeep finds each kind of planted error, at its place, and nothing else. It finds nothing in
// the store without them.
func TestVerifyDeepFindsPlantedErrors(t *testing.T) {
	for _, test := range []struct {
		name  string
		plant func(p *planter) block.ID // returns the block of the finding, 0 for the metadata
		want  string
		plain bool // Verify finds something too
	}{
		{name: "nothing", plant: func(p *planter) block.ID { return 0 }},
		{name: "bloom file without a key", want: "the bloom file excludes the key", plain: true,
			plant: func(p *planter) block.ID {
				set := p.sets[0]
				keys := p.keys(set)
				p.replace(set, &set.Bloom, func(sink block.Sink) error {
					w, err := bloom.NewWriter(sink, bloom.Options{})
					return errors.Join(err, w.AddAll(keys[:len(keys)-1]), w.Finish())
				})
				p.directory(set, keys)
				set.KeyDirectoryBytes = keydir.Size(set.Rows)
				return set.Bloom
			}},
		{name: "key index with another key", want: "row 11 is not found by its key", plain: true,
			plant: func(p *planter) block.ID {
				set := p.sets[1]
				keys := p.keys(set)
				keys[11] = append(keys[11], 'x')
				p.replace(set, &set.KeyIndex, func(sink block.Sink) error {
					w, err := cfile.NewWriter(sink,
						cfile.WriterOptions{Type: schema.Binary, Encoding: schema.Prefix, Compression: schema.LZ4,
							PositionalIndex: true, ValueIndex: true})
					p.must(err)
					w.AddMetadata("min_key", set.MinKey)
					w.AddMetadata("max_key", set.MaxKey)
					v := &batch.Vector{Type: schema.Binary}
					v.Bytes, v.Len = keys, len(keys)
					return errors.Join(w.Append(v), w.Finish())
				})
				return set.KeyIndex
			}},
		{name: "key directory without a row", want: "the key directory does not have row 7", plain: true,
			plant: func(p *planter) block.ID {
				set := p.sets[0]
				keys := p.keys(set)
				keys[7] = []byte("another key")
				p.directory(set, keys)
				return set.KeyDirectory
			}},
		{name: "false zone map", want: "zone map entry", plain: true, plant: func(p *planter) block.ID {
			set := p.sets[0]
			at := &set.Columns[vColumn].Block
			b := p.bytes(*at)
			r, err := cfile.Open(&block.Memory{Bytes: b}, cfile.ReaderOptions{})
			p.must(err)
			value, _ := r.Metadata("oribi.zonemap")
			var to kudupb.BlockPointerPB
			p.must(proto.Unmarshal(value, &to))
			zone := b[to.GetOffset():][:to.GetSize()]
			least := bytes.Index(zone, []byte{0x80, 0, 0, 0, 0, 0, 0, 7})
			zone[least+7] = 8
			sum := len(zone) - 4
			binary.LittleEndian.PutUint32(zone[sum:], coding.CRC32C(zone[:sum]))
			p.replace(set, at, func(sink block.Sink) error { _, err := sink.Write(b); return err })
			return *at
		}},
		{name: "false statistics of redos", want: "statistics", plain: true, plant: func(p *planter) block.ID {
			set := p.sets[1]
			b := p.bytes(set.Redo[0])
			// The footer's pair has max_timestamp as field 4, a fixed64.
			want := append([]byte{4<<3 | 1},
				binary.LittleEndian.AppendUint64(nil, uint64(p.redoTimestamp(set.Redo[0])))...)
			i := bytes.LastIndex(b, want)
			b[i+1]++
			p.resum(b)
			p.replace(set, &set.Redo[0], func(sink block.Sink) error { _, err := sink.Write(b); return err })
			return set.Redo[0]
		}},
		{name: "redo files in the wrong order", want: "row 3: change at", plant: func(p *planter) block.ID {
			set := p.sets[1]
			slices.Reverse(set.Redo)
			return set.Redo[1]
		}},
		{name: "update of a deleted row", want: "update at", plain: true, plant: func(p *planter) block.ID {
			set := p.sets[0]
			ts := p.redoTimestamp(set.Redo[0])
			p.redo(set, 0, change.Delta{Row: 5, TS: ts, List: change.AppendDelete(nil)}, p.update(5, ts, 1))
			return set.Redo[0]
		}},
		{name: "redo before the row's birth", want: "row 39: change at", plant: func(p *planter) block.ID {
			set := p.sets[0]
			ts := p.redoTimestamp(set.Redo[0])
			set.Births = []delta.Birth{{First: 39, Rows: 1, TS: set.MaxTimestamp}}
			p.dropUndos(set)
			p.redo(set, 0, change.Delta{Row: 5, TS: ts, List: change.AppendDelete(nil)}, p.update(39, 1<<40, 1))
			return set.Redo[0]
		}},
		{name: "two births of a row", want: "row 6: undo: delete", plant: func(p *planter) block.ID {
			p.sets[0].Births = []delta.Birth{{First: 6, Rows: 1, TS: 1 << 20}}
			return 0
		}},
		{name: "change newer than the rowset's newest", want: "the newest of the rowset is",
			plant: func(p *planter) block.ID {
				set := p.sets[1]
				set.MaxTimestamp = p.redoTimestamp(set.Redo[1]) - 1
				return set.Redo[1]
			}},
		{name: "count of live rows", want: "39 rows exist, the metadata says 40", plain: true,
			plant: func(p *planter) block.ID {
				p.sets[0].LiveRows++
				return 0
			}},
		{name: "lower bound", want: "the first key is not the lower bound", plain: true,
			plant: func(p *planter) block.ID {
				p.sets[1].MinKey = append(bytes.Clone(p.sets[0].MaxKey), 1)
				return 0
			}},
		{name: "included LSN", want: "includes LSNs up to", plant: func(p *planter) block.ID {
			p.sets[0].IncludedLSN += 1000
			return 0
		}},
		{name: "flushed LSN", want: "flushed up to LSN", plant: func(p *planter) block.ID {
			p.table.FlushedLSN += lsn.LSN(1000)
			return 0
		}},
		{name: "sum of sizes", want: "bytes, the metadata says", plant: func(p *planter) block.ID {
			p.sets[0].Bytes++
			return 0
		}},
		{name: "block that nothing names", want: "no rowset names the block", plant: func(p *planter) block.ID {
			id, _ := p.create(func(sink block.Sink) error { _, err := sink.Write([]byte("x")); return err })
			return id
		}},
		{name: "block named twice", want: "names the block, and so does", plant: func(p *planter) block.ID {
			set := p.sets[1]
			p.edit.Dead = append(p.edit.Dead, set.Columns[vColumn].Block, set.RowFile, set.KeyDirectory)
			set.DropRowFile() // which names the blocks too
			set.Columns[vColumn].Block = p.sets[0].Columns[vColumn].Block
			return p.sets[0].Columns[vColumn].Block
		}},
		{name: "block that is missing", want: "names the block, which is missing", plain: true,
			plant: func(p *planter) block.ID {
				p.edit.Dead = append(p.edit.Dead, p.sets[1].Columns[vColumn].Block)
				return p.sets[1].Columns[vColumn].Block
			}},
		{name: "row file with the rows of another rowset", want: "the row file: repeats block", plain: true,
			plant: func(p *planter) block.ID {
				set, other := p.sets[1], p.sets[0]
				b := p.bytes(other.RowFile)
				p.replace(set, &set.RowFile, func(sink block.Sink) error { _, err := sink.Write(b); return err })
				set.RowFileBytes = int64(len(b))
				return set.RowFile
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			mem := deepStore(t)
			var id block.ID
			places := plant(t, mem, func(p *planter) { id = test.plant(p) })
			store := must.Get(oribi.Open(deepDir, &oribi.Options{FS: mem, ReadOnly: true}))(t)
			defer store.Close()
			plain, err := findings(t.Context(), store.Verify)
			if missing := errors.Is(err, oribi.ErrNotFound); err != nil && !missing ||
				(len(plain) > 0 || missing) != test.plain {
				t.Errorf("Verify: %+v, %v", plain, err)
			}
			got := must.Get(findings(t.Context(), store.VerifyDeep))(t)
			if test.want == "" {
				must.Equal(t, len(got), 0, "findings", got)
				return
			}
			want := oribi.Finding{File: "meta", Block: uint64(id)}
			for _, at := range places {
				if at.ID == id {
					want.File, want.Offset = at.File, at.Offset
				}
			}
			must.Equal(t, len(got), 1, "findings", got)
			must.Contain(t, got[0].Problem, test.want)
			want.Problem = got[0].Problem
			must.Equal(t, got[0], want, "finding")
		})
	}
}

func findings(
	ctx context.Context, verify func(context.Context, func(oribi.Finding), ...oribi.Progress) error,
) (list []oribi.Finding, err error) {
	err = verify(ctx, func(f oribi.Finding) { list = append(list, f) })
	return list, err
}

// redoTimestamp returns the timestamp of the only change in a file of redos.
func (p *planter) redoTimestamp(id block.ID) mvcc.Timestamp {
	f, err := delta.OpenFile(&block.Memory{Bytes: p.bytes(id)}, cfile.ReaderOptions{})
	p.must(err)
	return f.Stats().Max
}

// dropUndos removes the undo files.
func (p *planter) dropUndos(set *rowset.Metadata) {
	for _, id := range set.Undo {
		set.Bytes -= p.size(id)
		p.edit.Dead = append(p.edit.Dead, id)
	}
	set.Undo = nil
}

// resum writes the checksum of a cfile's footer anew.
func (p *planter) resum(b []byte) {
	end := len(b) - 12 // of the message
	begin := end - int(binary.LittleEndian.Uint32(b[len(b)-4:]))
	binary.LittleEndian.PutUint32(b[begin-4:], coding.CRC32C(b[begin:]))
}
