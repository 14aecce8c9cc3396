package rowset

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/keydir"
)

// A key directory answers lookups of keys instead of the bloom file and the key index: an absent
// key costs one cache line, a present one the comparison of one row's key. It is in the cache like
// a cblock, and may be evicted. A rowset with a row file has it in a block too, others make it from
// their keys. A rowset counts its lookups without a directory and gets it once they have cost as
// much as that will, so that it is never more than twice as expensive as the better of the two: a
// rowset that few lookups reach gets none.

const (
	// lookupRows is the number of rows whose keys are read and hashed in the time that a lookup
	// without a directory takes longer than one with it: 150 to 400 ns, at 20 to 50 ns a row.
	lookupRows = 8

	// lookupBytes is the number of bytes that are read and checked in the time that a lookup
	// without a directory takes longer, if nothing is in memory: it reads two cblocks of 4 KiB, in
	// two reads.
	lookupBytes = 16 << 10
)

// directoryInCache is the part number of key directories in the cache. The block in the cache key
// is the block of the bloom file, which a rowset keeps for life: a column may be rewritten.
const directoryInCache = 1<<32 - 3

// maxTries is the number of candidates of a directory that are tried before the key index is asked.
// Chance leads to a second one for 1 in 400 keys; only keys chosen for that have more.
const maxTries = 4

// groupLimit is lowered in tests.
var groupLimit int64 = keydir.MaxGroups

// directory is the state of a rowset's key directory.
type directory struct {
	kept    atomic.Bool  // it was put into the cache, and no lookup missed it since
	off     atomic.Bool  // it cannot be made
	damaged atomic.Bool  // its block is damaged; Options.Damaged was called
	lookups atomic.Int64 // without one
	block   lazy[block.Source]
	making  sync.Mutex
}

// candidates are the rows that may have a key, according to a directory.
type candidates struct {
	dir    *keydir.Directory
	search keydir.Search
	group  int64 // the current one
}

// newCandidates searches a directory; ok is false if it excludes the key.
func newCandidates(dir *keydir.Directory, p bloom.Probe) (c candidates, ok bool) {
	c = candidates{dir: dir, search: dir.Search(p.Hash())}
	return c, c.next()
}

// exact reports whether groups are rows.
func (c *candidates) exact() bool { return c.dir.Shift() == 0 }

// row returns the current candidate, if groups are rows.
func (c *candidates) row() batch.Ordinal { return batch.Ordinal(c.group) }

// next makes the next candidate the current one.
func (c *candidates) next() (ok bool) {
	c.group, ok = c.search.Next()
	return ok
}

// directoryKey returns the cache key of the key directory.
func (d *DiskRowSet) directoryKey() cache.Key {
	return cache.Key{Block: uint64(d.Metadata().Bloom), Part: directoryInCache}
}

// keyDirectory returns the key directory. It returns nil if the directory is not in memory and not
// worth making.
func (d *DiskRowSet) keyDirectory() *keydir.Directory {
	if d.opts.Cache == nil {
		return nil
	}
	k := &d.directory
	if k.kept.Load() {
		if v, ok := d.opts.Cache.Get(d.directoryKey()); ok {
			return v.(*keydir.Directory)
		}
		k.lookups.Store(0) // it was evicted, and must pay again
		k.kept.Store(false)
	}
	if d.usuallyFinds() && !keydir.Eager.Load() {
		return nil
	}
	if n := k.lookups.Add(1); n < d.directoryPrice() && !keydir.Eager.Load() || k.off.Load() || !k.making.TryLock() {
		return nil
	}
	defer k.making.Unlock()
	return d.keepDirectory()
}

// directoryPrice returns the number of lookups that must be made before the directory is.
func (d *DiskRowSet) directoryPrice() int64 {
	m := d.Metadata()
	if m.KeyDirectory != 0 && !d.directory.damaged.Load() {
		return m.KeyDirectoryBytes / lookupBytes
	}
	return m.Rows / lookupRows
}

// keepDirectory makes the key directory and puts it into the cache. It returns nil if that is not
// possible: the caller finds the reason, if it is damage, or does not need it.
func (d *DiskRowSet) keepDirectory() *keydir.Directory {
	c, k := d.opts.Cache, &d.directory
	k.lookups.Store(0)
	if v, ok := c.Get(d.directoryKey()); ok { // made by another rowset of the same rows
		k.kept.Store(true)
		return v.(*keydir.Directory)
	}
	if !d.directoryFits() {
		return nil
	}
	dir, err := d.makeDirectory()
	if err != nil || dir == nil {
		k.off.Store(err == nil || isDamage(err))
		return nil
	}
	c.Put(d.directoryKey(), dir, dir.Size())
	k.kept.Store(true)
	return dir
}

// directoryFits reports whether the key directory takes at most its share of the cache.
func (d *DiskRowSet) directoryFits() bool {
	return 10*keydir.Size(d.Metadata().Rows) <= d.opts.Cache.Limit()
}

// expectsDirectory reports whether the key directory will be read after some lookups.
func (d *DiskRowSet) expectsDirectory() bool {
	return d.opts.Cache != nil && d.Metadata().KeyDirectory != 0 && !d.directory.damaged.Load() &&
		!d.directory.off.Load() && d.directoryFits()
}

// makeDirectory reads the key directory, or builds it if it has no block that can be read.
func (d *DiskRowSet) makeDirectory() (*keydir.Directory, error) {
	if d.Metadata().KeyDirectory != 0 && !d.directory.damaged.Load() {
		dir, err := d.readDirectory()
		if !isDamage(err) {
			return dir, err
		}
		d.noteDirectoryDamage(err)
	}
	return d.buildDirectory()
}

// directoryBlock opens the block of the key directory and reads n bytes of its end with it.
func (d *DiskRowSet) directoryBlock(n int64) (block.Source, error) {
	return d.directory.block.get(func() (block.Source, error) {
		src, err := d.openTail(d.Metadata().KeyDirectory, n)
		return openSource(d, d.Metadata().KeyDirectory, src, err, func(src block.Source) (block.Source, error) {
			return src, nil
		})
	})
}

// readDirectory reads the block of the key directory, with one read.
func (d *DiskRowSet) readDirectory() (*keydir.Directory, error) {
	m := d.Metadata()
	src, err := d.directoryBlock(m.KeyDirectoryBytes)
	if err != nil {
		return nil, err
	}
	dir, err := keydir.Read(src, m.Rows, m.Bloom)
	if err != nil {
		return nil, fmt.Errorf("rowset %d: %w", m.ID, err)
	}
	return dir, nil
}

// noteDirectoryDamage notes that the block of the key directory is damaged, and reports it once.
func (d *DiskRowSet) noteDirectoryDamage(err error) {
	if d.directory.damaged.CompareAndSwap(false, true) && d.opts.Damaged != nil {
		m := d.Metadata()
		d.opts.Damaged(m.ID, m.KeyDirectory, err)
	}
}

// KeyDirectoryDamaged reports whether a lookup or CheckKeyDirectory has found damage in the block
// of the key directory.
func (d *DiskRowSet) KeyDirectoryDamaged() bool { return d.directory.damaged.Load() }

// CheckKeyDirectory verifies the block of the key directory, unless the rowset has no such block,
// and looks up the key of each row. It does not report damage of the columns, which CheckFiles
// finds.
func (d *DiskRowSet) CheckKeyDirectory() error {
	if d.Metadata().KeyDirectory == 0 {
		return nil
	}
	dir, err := d.readDirectory()
	if err == nil {
		keys := d.eachKey(func(row int64, hash uint64) bool {
			if !dir.Contains(hash, row) {
				err = fault.Corruptf("rowset %d: the key directory in block %d does not have row %d", d.Metadata().ID,
					d.Metadata().KeyDirectory, row)
			}
			return err == nil
		})
		if keys != nil && !isDamage(keys) {
			return keys
		}
	}
	if isDamage(err) {
		d.noteDirectoryDamage(err)
	}
	return err
}

// buildDirectory makes the key directory from the key columns; nil if the keys are such that it is
// of no use.
func (d *DiskRowSet) buildDirectory() (*keydir.Directory, error) {
	dir, fits := keydir.New(d.Metadata().Rows, groupLimit), true
	err := d.eachKey(func(row int64, hash uint64) bool {
		fits = dir.Add(hash, row)
		return fits
	})
	if err != nil || !fits {
		return nil, err
	}
	return dir, nil
}

// eachKey calls f with each row and the hash of its key until f returns false.
func (d *DiskRowSet) eachKey(f func(row int64, hash uint64) bool) error {
	base, err := d.NewBaseReader(allColumns(d.Schema.Keys))
	if err != nil {
		return err
	}
	var keys [][]byte
	for {
		vectors, from, n, err := base.Next()
		if err != nil || n == 0 {
			return err
		}
		keys = change.AppendVectorKeys(keys[:0], d.encoder, vectors, 0, n)
		for i, key := range keys {
			if !f(int64(from)+int64(i), bloom.MakeProbe(key).Hash()) {
				return nil
			}
		}
	}
}

// buildDirectory makes the key directory, if the rowset is to have one.
func (w *Writer) buildDirectory() {
	if !w.hasDirectory() {
		return
	}
	dir := keydir.New(int64(len(w.hashes)), groupLimit)
	for row, hash := range w.hashes {
		if !dir.Add(hash, int64(row)) {
			return
		}
	}
	w.hashes, w.keys = nil, dir
}

// writeDirectory writes the key directory into a new block.
func (w *Writer) writeDirectory() (block.Sink, error) {
	sink, err := w.creation.Create()
	if err != nil {
		return nil, err
	}
	return sink, w.keys.Write(sink, w.row.Bloom)
}

// seekExact returns the row with a key by the key index.
func (d *DiskRowSet) seekExact(key []byte) (row batch.Ordinal, found bool, err error) {
	if row, found, err = d.seekIndex(key); !found {
		row = 0
	}
	return row, found, err
}
