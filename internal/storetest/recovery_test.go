package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/crash"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// A history is interrupted at random file operations, also in the middle of writes, by kills, power
// cuts and torn power cuts: while the store is opened, written, flushed, compacted, closed and
// recovered. The remaining files must open, for reading without changing any file and for writing.
// They must contain all acknowledged batches, then a prefix of the rest, each batch whole.
func TestCrashesAnywhereLeaveAcknowledgedBatches(t *testing.T) {
	crashAnywhere(t, proofTime(400*time.Millisecond), crash.RandomCrashes)
}

// The same, while flushes run inside compactions of the same table.
func TestCrashesInsideCompactionsLeaveAcknowledgedBatches(t *testing.T) {
	if total := crashAnywhere(t, proofTime(300*time.Millisecond), crash.RandomInside); total.Inside == 0 {
		t.Error("no flush inside a compaction")
	}
}

func crashAnywhere(
	t *testing.T, within time.Duration, history func(seed uint64) crash.Crashes,
) (total crash.CrashCounts) {
	t.Helper()
	end := time.Now().Add(within)
	for seed := seedtest.Seed(t); time.Now().Before(end); seed++ {
		script, counts, err := history(seed).Run()
		total.Add(counts)
		if err != nil {
			t.Fatal(failure(seed, err, script))
		}
	}
	t.Logf("%+v", total)
	return total
}

// The creation of a store is interrupted before each file operation and in the middle of each
// write. A reader then finds that the directory is not a store, or finds an empty store. A writer
// completes the store, and from then on nothing is lost.
func TestInterruptedFormatStartsOver(t *testing.T) {
	seed := seedtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 4))
	every, limit := seedtest.Stride(12), seedtest.Rounds(20, 3)
	states := map[[16]byte]crashfs.State{}
	disk := crashfs.New(vfs.NewMem())
	disk.Halves = true
	offset := rng.IntN(every)
	disk.OnOperation(func(c crashfs.Operation) error {
		if c.N%every == offset {
			for s := range c.Point().States(rng.Uint64(), limit) {
				s.Name = fmt.Sprintf("before change %d, %s %s, half %v: %s", c.N, c.Op, c.Name, c.Half, s.Name)
				states[s.Hash] = s
			}
		}
		return nil
	})
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: disk, Manual: true}))(t)
	disk.OnOperation(nil)
	store.Close()
	for _, s := range states {
		must.Do(t, finishFormat(t, s.Image), "-seed", seed, s.Name)
	}
	t.Logf("%d changes, %d states", disk.Operations(), len(states))
}

// finishFormat opens the remains of an interrupted creation for reading and for writing, and cuts
// the power after an acknowledged batch.
func finishFormat(t *testing.T, image *vfs.Mem) error {
	before, missing := files.Fingerprint(image, "/store")
	reader, err := oribi.Open("/store", &oribi.Options{FS: image, ReadOnly: true})
	switch {
	case err == nil && len(reader.Tables()) > 0:
		return errors.New("a reader finds tables")
	case err == nil:
		reader.Close()
	case !errors.Is(err, oribi.ErrNotStore):
		return fmt.Errorf("a reader gets %w", err)
	}
	if after, err := files.Fingerprint(image, "/store"); after != before || (err == nil) != (missing == nil) {
		return errors.New("a reader changes the disk")
	}
	store, err := oribi.Open("/store", &oribi.Options{FS: image, Manual: true})
	if errors.Is(err, oribi.ErrNotStore) && tornFormatting(image) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("a writer gets %w", err)
	}
	table := numbersTable(t, store, "numbers")
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 0, "v": 0})
	if _, err := b.Commit(context.Background()); err != nil {
		return err
	}
	dark := image.Crash()
	store.Close()
	if store, err = oribi.Open("/store", &oribi.Options{FS: dark, Manual: true, ErrorIfMissing: true}); err != nil {
		return fmt.Errorf("after a power cut: %w", err)
	}
	defer store.Close()
	if n := countNumbers(t, store); n != 1 {
		return fmt.Errorf("%d rows after a power cut, want 1", n)
	}
	return nil
}

// tornFormatting reports whether the power cut came during the write of the file that marks an
// unfinished store and left a part of its only sector. Disks write sectors atomically, so such a
// file is not recognized as ours.
func tornFormatting(image *vfs.Mem) bool {
	b, err := files.ReadFile(image, "/store/FORMATTING")
	if err != nil || len(bytes.Trim(b, "\x00")) == 0 {
		return false
	}
	half := 28 / 2
	return len(b) < 2*half || len(bytes.Trim(b[:half], "\x00")) == 0 || len(bytes.Trim(b[half:], "\x00")) == 0
}

// Opening after a kill reports what it found and did: the torn end of the log and where it is kept,
// a repaired flipped bit, and the removed parts of unfinished blocks.
func TestRecoveryReportsRepairs(t *testing.T) {
	_, tree := storeTree(t)
	const segment = "wal/000000000001.wal"
	log := bytes.TrimRight(tree[segment], "\x00") // of the killed writer's window
	log = slices.Clone(log[:len(log)-40])         // without the end of the last record
	log[100] ^= 4
	tree[segment] = log
	for name, b := range tree {
		if filepath.Ext(name) == ".data" {
			tree[name] = append(slices.Clone(b), make([]byte, 5000)...)
		}
	}
	tree["data/00112233445566778899aabbccddeeff.data"] = []byte("oribicnt") // the header page is not complete
	mem := vfs.NewMem()
	must.Do(t, mem.Mkdir("/store"))
	writeTree(t, mem, "/store", tree)
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: mem, Manual: true}))(t)
	defer store.Close()
	r := store.Recovery()
	if r.Clean || r.Frames == 0 || r.TornBytes == 0 || r.RepairedBits != 1 ||
		r.StrayContainers != 1 || r.CutBytes != 5000 {
		t.Errorf("%+v", r)
	}
	if kept := readAll(t, mem, "/store/"+r.TornFile); int64(len(kept)) != r.TornBytes {
		t.Errorf("%s has %d bytes, %d were torn", r.TornFile, len(kept), r.TornBytes)
	}
	must.Equal(t, countNumbers(t, store), 109, "rows")
}
