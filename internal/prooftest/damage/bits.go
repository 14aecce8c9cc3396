package damage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/vfs"
)

// Bits is a small closed store, every bit of which can be flipped, one at a time.
//
// What becomes of a flip depends on where it is:
//
//	ANCHOR, INSTANCE, wal/, a header page   the store is opened: it refuses, or answers rightly and tells, or has put it right, or has
//	                                        removed the file, a piece of the log that is needed no more
//	meta/                                   the store is opened: it refuses, or answers rightly; Pebble's files have bytes that nobody reads
//	a block                                 the block's check finds it; its readers give what is right, or an error
//	the zeros behind a block                the block's check finds it
//	elsewhere in data/, LOCK                no block lies there, nobody reads it
//
// Of the bits in data/ one in reopenEvery has the store opened and read whole as well.
type Bits struct {
	Bits int64 // how many there are

	d     *Store
	files []bitFile
}

// bitFile is a file in the order of its bits.
type bitFile struct {
	name  string // within the store
	first int64  // its first bit
	size  int64  // bytes
}

// BitSlices is how many slices the bits of a store are cut into: bit n is in slice n % BitSlices,
// so that a slice is of every place.
const BitSlices = 1024

const (
	bitStore    = 900 << 10 // bytes; so much a store takes before its last flush and its close
	bitSteps    = 2000      // of its history, at most
	reopenEvery = 256       // of the bits in data/
	headerPage  = 4096      // of a container
	blockAlign  = 4096      // blocks begin at its multiples
	dataDir     = "data/"
	metaDir     = "meta/"
	lockFile    = "LOCK"
)

// BitCounts are what came of flipped bits.
type BitCounts struct {
	Flips    int64
	Opened   int64 // for so many the store was opened
	Refused  int64 // Open failed
	Errors   int64 // a read failed
	Repaired int64 // put right, and told
	Found    int64 // Verify told, or the block's check; answers were right, or errors
	Unused   int64 // answers were right, nobody reads the bit
}

// Add sums two up.
func (c *BitCounts) Add(o BitCounts) {
	c.Flips += o.Flips
	c.Opened += o.Opened
	c.Refused += o.Refused
	c.Errors += o.Errors
	c.Repaired += o.Repaired
	c.Found += o.Found
	c.Unused += o.Unused
}

// BitSlice tells which slice of which store a seed stands for: seeds 1 to BitSlices are all bits of
// the first.
func BitSlice(seed uint64) (store, slice uint64) {
	return (seed - 1) / BitSlices, (seed - 1) % BitSlices
}

// NewBits makes the store of a number: a random history, until it takes about 1 MiB, the places of
// dropped blocks among them.
func NewBits(store uint64) (*Bits, error) {
	o := history.RandomSettings(store)
	o.Hybrid, o.History, o.NoCrashes, o.Keys, o.Batch = false, 0, true, 500, 4
	large := func(r *history.Runner) bool {
		u, err := r.Store.DiskUsage()
		return err == nil && u.Total >= bitStore
	}
	d, err := newStore(o, func(r *history.Runner) bool { return r.Counts.Steps < bitSteps && !large(r) })
	if err != nil {
		return nil, err
	}
	b := &Bits{d: d}
	for _, name := range d.files {
		info, err := d.image.Stat(name)
		if err != nil {
			return nil, err
		}
		b.files = append(b.files, bitFile{strings.TrimPrefix(filepath.ToSlash(name), history.Dir+"/"), b.Bits, info.Size()})
		b.Bits += 8 * info.Size()
	}
	return b, nil
}

// Script is the history that made the store.
func (b *Bits) Script() *script.Script { return b.d.Script() }

// Flip is the harm of a bit.
func (b *Bits) Flip(bit int64) Flip {
	f := b.file(bit)
	return Flip{f.name, (bit - f.first) / 8, 1 << (bit % 8)}
}

func (b *Bits) file(bit int64) *bitFile {
	for i := len(b.files) - 1; ; i-- {
		if bit >= b.files[i].first {
			return &b.files[i]
		}
	}
}

// Slice flips the bits of one of BitSlices slices, in a random order, until more says that it is
// enough. The errors name the flips that went wrong.
func (b *Bits) Slice(slice uint64, more func(BitCounts) bool) (c BitCounts, err error) {
	blocks, err := openBitBlocks(b)
	if err != nil {
		return c, err
	}
	defer blocks.close()
	rng := rand.New(rand.NewPCG(slice, 5))
	at := int64(slice % BitSlices)
	var errs []error
	for _, k := range rng.Perm(int((b.Bits - at + BitSlices - 1) / BitSlices)) {
		if !more(c) || len(errs) > 10 {
			break
		}
		bit := at + int64(k)*BitSlices
		f := b.Flip(bit)
		counts, err := b.try(blocks, f, int64(k))
		c.Add(counts)
		if err != nil {
			errs = append(errs, fmt.Errorf("bit %d, %v: %w", bit, f, err))
		}
	}
	return c, errors.Join(errs...)
}

// try flips one bit; k numbers those of the slice.
func (b *Bits) try(blocks *bitBlocks, f Flip, k int64) (c BitCounts, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	c.Flips = 1
	if !strings.HasPrefix(f.File, dataDir) || f.Offset < headerPage {
		may := strings.HasPrefix(f.File, metaDir) || f.File == lockFile
		return c, b.open(f, k%2 == 0, may, &c)
	}
	id, used := blocks.at(f)
	switch {
	case !used:
		c.Unused++
	default:
		if err := blocks.try(f, id); err != nil {
			return c, err
		}
		c.Found++
	}
	if k%reopenEvery == 0 {
		var whole BitCounts
		err = b.open(f, k%(2*reopenEvery) == 0, !used, &whole)
		c.Opened += whole.Opened
	}
	return c, err
}

// open opens a copy with the flip in it and reads all of it. unused tells that nothing need be told
// of the flip.
func (b *Bits) open(f Flip, readOnly, unused bool, c *BitCounts) error {
	c.Opened++
	image := b.d.image.Clone()
	path := filepath.Join(history.Dir, filepath.FromSlash(f.File))
	if err := flip(image, Flip{path, f.Offset, f.Mask}); err != nil {
		return err
	}
	harmed, err := readByte(image, path, f.Offset)
	if err != nil {
		return err
	}
	opts := b.d.r.Options(image)
	opts.ReadOnly = readOnly
	s, err := oribi.Open(history.Dir, opts)
	if err != nil {
		c.Refused++
		return damaged(err)
	}
	defer s.Close()
	if err := b.d.read(s); err != nil {
		c.Errors++
		return damaged(err)
	}
	now, err := readByte(image, path, f.Offset)
	switch {
	case s.Recovery().RepairedBits > 0 || err == nil && now != harmed:
		c.Repaired++
		return nil
	case unused || errors.Is(err, fs.ErrNotExist): // a writer removes log that is needed no more
		c.Unused++
		return nil
	case err != nil:
		return err
	}
	found := false
	if err := s.Verify(context.Background(), func(oribi.Finding) { found = true }); err != nil {
		return damaged(err)
	}
	if !found {
		return fmt.Errorf("the store answers rightly, and nothing tells of it")
	}
	c.Found++
	return nil
}

func readByte(fsys vfs.FS, name string, off int64) (byte, error) {
	f, err := fsys.Open(name, false)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], off)
	return b[0], err
}
