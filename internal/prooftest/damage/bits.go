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
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/vfs"
)

// Bits is a small closed store whose bits can be flipped one at a time.
//
// The expected outcome of a flip depends on its position:
//
//	ANCHOR, INSTANCE,   Open fails; or reads are correct and Verify reports the damage, Open has
//	wal/, header pages  repaired it, or Open has removed the file, an obsolete log segment
//	meta/               Open fails or reads are correct; Pebble's files have unused bytes
//	a block             VerifyBlock reports it; reads return correct data or an error
//	padding of a block  VerifyBlock reports it
//	rest of data/, LOCK unused, no effect
//	JOURNAL, RESERVE    no effect: only Salvage reads the journal, and verifies it
//
// For one in reopenEvery bits of data/, the store is also opened and read completely.
type Bits struct {
	Bits int64 // number of bits

	d     *Store
	files []bitFile
}

// bitFile is a file and the number of its first bit.
type bitFile struct {
	name  string // within the store
	first int64  // its first bit
	size  int64  // bytes
}

// BitSlices is the number of slices of a store's bits. Bit n is in slice n % BitSlices, which
// spreads each slice over all files.
const BitSlices = 1024

const (
	bitStore    = 900 << 10 // bytes on disk before the last flush and the close
	bitSteps    = 2000      // maximum steps of the history
	reopenEvery = 256       // bits of data/ for each full read
	headerPage  = 4096      // bytes, of a container
	blockAlign  = 4096      // blocks begin at multiples of it
	dataDir     = "data/"
	metaDir     = "meta/"
	lockFile    = "LOCK"
	reserveFile = "RESERVE"
)

// BitCounts counts the outcomes of flipped bits.
type BitCounts struct {
	Flips    int64
	Opened   int64 // calls of Open
	Refused  int64 // Open failed
	Errors   int64 // a read failed
	Repaired int64 // Open repaired the bit and reported it
	Found    int64 // Verify or VerifyBlock reported the bit
	Unused   int64 // reads were correct and do not depend on the bit
}

// Add adds o to c.
func (c *BitCounts) Add(o BitCounts) {
	c.Flips += o.Flips
	c.Opened += o.Opened
	c.Refused += o.Refused
	c.Errors += o.Errors
	c.Repaired += o.Repaired
	c.Found += o.Found
	c.Unused += o.Unused
}

// BitSlice returns the store and the slice of a seed. Seeds 1 to BitSlices cover all bits of the
// first store.
func BitSlice(seed uint64) (store, slice uint64) {
	return (seed - 1) / BitSlices, (seed - 1) % BitSlices
}

// NewBits creates a store from a random history until it takes about 1 MiB on disk, including the
// space of dropped blocks.
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
		b.files = append(b.files,
			bitFile{strings.TrimPrefix(filepath.ToSlash(name), history.Dir+"/"), b.Bits, info.Size()})
		b.Bits += 8 * info.Size()
	}
	return b, nil
}

// Script returns the history that created the store.
func (b *Bits) Script() *script.Script { return b.d.Script() }

// Flip returns the change that flips a bit.
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

// Slice flips the bits of one of BitSlices slices, in random order, until more returns false. The
// errors name the flips with an unexpected outcome.
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

// try flips one bit, the k-th of its slice.
func (b *Bits) try(blocks *bitBlocks, f Flip, k int64) (c BitCounts, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	c.Flips = 1
	if !strings.HasPrefix(f.File, dataDir) || f.Offset < headerPage {
		may := strings.HasPrefix(f.File, metaDir) || f.File == lockFile ||
			f.File == blockmanager.JournalName || f.File == reserveFile
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

// open opens a copy with the flip and reads all of it. unused means that the flip need not be
// reported.
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
	case unused || errors.Is(err, fs.ErrNotExist): // a writer removes obsolete log segments
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
		return fmt.Errorf("reads are correct, but the flip is not reported")
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
