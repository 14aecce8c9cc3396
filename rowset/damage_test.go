package rowset

import (
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// check opens a rowset and checks all its files; id is the damaged block if the rowset opens.
func check(s *schema.Schema, row *Metadata, d *disk) (id block.ID, opened bool, err error) {
	set, err := Open(s, row, Options{Blocks: d})
	if err != nil {
		return 0, false, err
	}
	defer set.Unref()
	if id, err = set.CheckFiles(); err == nil {
		id, err = row.RowFile, set.CheckRowFile()
	}
	if err == nil {
		err = set.CheckBounds()
	}
	return id, true, err
}

// Plan: every byte of every file of a small rowset with undos and redos is flipped in turn. Opening
// or checking finds it and names the block.
func TestCheckFilesFindsEachFlippedByte(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "a", Type: schema.Int32}, {ID: 2, Name: "b", Type: schema.String},
			{ID: 3, Name: "c", Type: schema.Int64, Nullable: true},
			{ID: 4, Name: "d", Type: schema.String, Nullable: true},
			{ID: 5, Name: "e", Type: schema.Array, Element: schema.Int16, Nullable: true}}, 2), 60)
	row := w.rewritten(t, r)
	must.Get2(check(w.schema, row, w.disk))(t)
	step := seedtest.Stride(11)
	flips := 0
	for _, number := range slices.Sorted(maps.Keys(w.disk.blocks)) {
		b := w.disk.blocks[number]
		for at := r.IntN(step); at < len(b.Bytes); at += step {
			mask := byte(1) << r.IntN(8)
			b.Bytes[at] ^= mask
			id, opened, err := check(w.schema, row, w.disk)
			b.Bytes[at] ^= mask
			flips++
			if err == nil {
				t.Errorf("block %d: byte %d of %d xor %02x is not found", number, at, len(b.Bytes), mask)
			} else if opened && id != number {
				t.Errorf("block %d: byte %d: block %d is named: %v", number, at, id, err)
			} else if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
				t.Errorf("block %d: byte %d: %v", number, at, err)
			}
		}
	}
	t.Logf("%d flips in %d blocks", flips, len(w.disk.blocks))
}

func TestCheckFilesFindsASwappedFile(t *testing.T) {
	r := seedtest.Rand(t)
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}, {ID: 2, Name: "v", Type: schema.Int64}}, 1)
	w, other := newTestRowSet(t, r, s, 100), newTestRowSet(t, r, s, 60)
	row, stranger := w.rewritten(t, r), other.rewritten(t, r)
	pairs := map[string][2]block.ID{"key column": {row.Columns[0].Block, stranger.Columns[0].Block},
		"column": {row.Columns[1].Block, stranger.Columns[1].Block}}
	for name, pair := range pairs {
		kept := w.disk.blocks[pair[0]]
		w.disk.blocks[pair[0]] = other.disk.blocks[pair[1]]
		must.Fail(t, must.Err2(check(s, row, w.disk)), fault.ErrCorrupt, name)
		w.disk.blocks[pair[0]] = kept
	}
	delete(w.disk.blocks, row.Bloom)
	if id, _, err := check(s, row, w.disk); !errors.Is(err, fault.ErrNotFound) || id != row.Bloom {
		t.Errorf("without the bloom file: block %d, %v", id, err)
	}
}

func TestCheckBoundsComparesMetadataWithTheKeyFile(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r, mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.String}}, 1), 50)
	row := *w.rewritten(t, r)
	row.MaxKey = append(slices.Clone(row.MaxKey), 'x')
	must.Fail(t, must.Err2(check(w.schema, &row, w.disk)), fault.ErrCorrupt)
	set := must.Get(Open(w.schema, &row, Options{Blocks: w.disk}))(t)
	must.Fail(t, set.CheckKey(w.rows[0].key, 1), fault.ErrCorrupt, "a key at another row")
	must.Fail(t, set.CheckKey([]byte("no key of this rowset"), 0), fault.ErrCorrupt, "a missing key")
}

// The files are closed when the last reader is done, not before; an iterator is a reader.
func TestFilesStayOpenForReaders(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
			{ID: 2, Name: "v", Type: schema.Int64}}, 1), 50)
	req := w.randomRequest(r, mvcc.Everything)
	it := must.Get(newIterator(w.set, req))(t)
	w.set.Ref()
	w.set.Unref()
	w.set.Unref()
	must.Do(t, w.compare(req, it))
	if w.disk.open.Load() == 0 {
		t.Error("the files were closed while an iterator was open")
	}
	must.Do(t, errors.Join(it.Close(), it.Close()))
	must.Equal(t, w.disk.open.Load(), 0, "blocks open")
}

// The error of a failed open is not kept: the next read tries again.
func TestFailedOpenIsRetried(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
			{ID: 2, Name: "v", Type: schema.Int64}}, 1), 50)
	row := w.rewritten(t, r)
	flaky := &flakyDisk{disk: w.disk}
	set := must.Get(Open(w.schema, row, Options{Blocks: flaky}))(t)
	flaky.fail = true
	must.Fail(t, must.Err(set.Histories(mvcc.Everything)), io.ErrUnexpectedEOF)
	flaky.fail = false
	must.Do(t, must.Err(set.Histories(mvcc.Everything)))
}

type flakyDisk struct {
	*disk
	fail bool
}

func (d *flakyDisk) OpenBlock(id block.ID) (Block, error) {
	if d.fail {
		return nil, io.ErrUnexpectedEOF
	}
	return d.disk.OpenBlock(id)
}

// Concurrent snapshot reads, changes, and first uses of every file, for the race detector.
func TestReadersAndWritersAtOnce(t *testing.T) {
	r := seedtest.Rand(t)
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
		{ID: 2, Name: "v", Type: schema.Int64, Nullable: true}}, 1)
	w := newTestRowSet(t, r, s, manyRows)
	row := w.rewritten(t, r)
	locked := &lockedDisk{disk: w.disk}
	set := must.Get(Open(s, row, Options{Blocks: locked, Cache: cache.New(1 << 20)}))(t)
	w.set = set
	var wg sync.WaitGroup
	for g := range 4 {
		req := w.randomRequest(r, mvcc.Before(w.end))
		wg.Go(func() {
			it, err := newIterator(set, req)
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(w.compare(req, it), it.Close()); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			for i := g; i < len(w.rows); i += 4 {
				if live, err := set.Live(batch.Ordinal(i)); err == nil && live {
					set.Apply(batch.Ordinal(i), w.end, 7,
						change.List(change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 2, nil)))
				}
			}
		})
	}
	wg.Wait()
	set.Unref()
}

type lockedDisk struct {
	mu sync.Mutex
	*disk
}

func (d *lockedDisk) OpenBlock(id block.ID) (Block, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := d.disk.OpenBlock(id)
	return &lockedBlock{b, d}, err
}

type lockedBlock struct {
	Block
	d *lockedDisk
}

func (b *lockedBlock) Close() error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	return b.Block.Close()
}
