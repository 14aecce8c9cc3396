// Package large loads, reads, changes, and copies tables of many million rows on a real disk, and
// compares each answer with the formula that makes the rows.
package large

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/backup"
	"github.com/oribi-db/oribi/internal/prooftest/memory"
	"github.com/oribi-db/oribi/vfs"
)

// Sizes are the numbers of rows of the runs, in millions.
var Sizes = []int64{16, 32, 64, 128, 256}

// Run is one table: the number of its rows, and how often it is read and changed. The table is in
// the subdirectories of Dir.
type Run struct {
	Dir     string
	Rows    int64
	Gets    int // reads of a row by a random key, of which one in eight is absent
	Updates int // updates of one column of a random row

	Progress func(text string) // called after each step, and while the table is loaded
}

// Counts are what a run did and measured.
type Counts struct {
	Rows, Gets, Updates, Scanned int64
	Disk                         int64 // MiB, of the store before the updates
	Peak                         int64 // MiB, the largest resident set of the process
	Copies                       int64 // backups that were made and listed; 0 if the disk lacks the room
}

// row is a row of the table. All cells but A of an updated row are made from the key.
type row struct {
	Key    int64     `oribi:"key,key"`
	A      int64     `oribi:"a"`
	B      int32     `oribi:"b"`
	Price  float64   `oribi:"price"`
	Time   time.Time `oribi:"time"`
	Low    string    `oribi:"low"`
	Amount int64     `oribi:"amount"`
	OK     bool      `oribi:"ok"`
	ID     string    `oribi:"id"`
}

// updated is added to A by an update.
const updated = 1 << 40

// strideOfUpdates is the distance of the rows that are updated.
const strideOfUpdates = 251

// followerLimit is the memory limit of the follower, which is in the same process as the writer.
const followerLimit = 16 << 20

// batchRows is the number of updates of a batch.
const batchRows = 1000

// rowOf returns row i as it is inserted.
func rowOf(i int64) row {
	x, y := hashes(i)
	return row{Key: 2 * i, A: firstOf(x), B: int32(y % 1009), Price: float64(x>>40) / 100,
		Time: time.UnixMicro(1_700_000_000_000_000 + i*1000 + int64(y%900)).UTC(), Low: lows[y>>60],
		Amount: amountOf(y), OK: x&1 == 1, ID: id(x, y)}
}

// hashes returns two numbers that look random, from which the cells of row i are made.
func hashes(i int64) (x, y uint64) {
	x = mix(uint64(i))
	return x, mix(x)
}

func firstOf(x uint64) int64  { return int64(x % 1000003) }
func amountOf(y uint64) int64 { return int64(y >> 34) }

// mix returns a value that looks random, and is another one for each x.
func mix(x uint64) uint64 {
	x = (x ^ x>>29) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>32) * 0x94D049BB133111EB
	return x ^ x>>29
}

// id returns 40 characters.
func id(x, y uint64) string {
	b := make([]byte, 0, 40)
	for _, v := range []uint64{x, y, x ^ y<<1} {
		b = strconv.AppendUint(b, v|1<<63, 16)
	}
	return string(b[:40])
}

var lows = func() (names [16]string) {
	for i := range names {
		names[i] = fmt.Sprint("kind ", i)
	}
	return names
}()

// Do loads the table in key order, reads and changes it, opens a follower, and makes a backup. It
// returns an error for the first wrong answer. Errors: those of the store.
func (r Run) Do() (c Counts, err error) {
	ctx := context.Background()
	dir := filepath.Join(r.Dir, "store")
	store, err := oribi.Open(dir, nil)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	t, err := oribi.OpenTable[row](store, "rows")
	if err != nil {
		return c, err
	}
	w := work{Run: r, ctx: ctx, store: store, table: t, random: rand.New(rand.NewPCG(uint64(r.Rows), 1)), counts: &c}
	for _, step := range []struct {
		name string
		do   func() error
	}{{"loaded", w.load}, {"measured", w.size}, {"scanned", w.scan}, {"read", w.get}, {"updated", w.update},
		{"scanned", w.scan}, {"read", w.get}, {"backed up", w.backup},
		{"followed", func() error { return w.follow(dir) }}} {
		if err = step.do(); err != nil {
			return c, fmt.Errorf("before the table was %s: %w", step.name, err)
		}
		if step.name != "followed" { // the process then has two stores
			if c.Peak, err = memory.PeakResident(); err != nil {
				return c, err
			}
			c.Peak >>= 20
		}
		r.Progress(fmt.Sprintf("%d rows %s, peak %d MiB", r.Rows, step.name, c.Peak))
		debug.FreeOSMemory()
	}
	return c, nil
}

type work struct {
	Run
	ctx     context.Context
	store   *oribi.Store
	table   *oribi.TableOf[row]
	random  *rand.Rand
	changed int64 // rows that are updated: 0, strideOfUpdates, …
	counts  *Counts
}

func (w *work) load() error {
	var rows iter.Seq[row] = func(yield func(row) bool) {
		for i := range w.Rows {
			if !yield(rowOf(i)) {
				return
			}
			if i%10_000_000 == 0 {
				w.Progress(fmt.Sprintf("%d rows to load", w.Rows-i))
			}
		}
	}
	_, n, err := w.table.Ingest(w.ctx, rows)
	if err == nil && n != w.Rows {
		err = fmt.Errorf("ingested %d rows of %d", n, w.Rows)
	}
	w.counts.Rows = n
	return err
}

func (w *work) size() error {
	use, err := w.store.DiskUsage()
	w.counts.Disk = use.Total >> 20
	return err
}

// scan compares the number of rows and the sums of two columns, of which one was updated.
func (w *work) scan() error {
	var a, amount int64
	for i := range w.Rows {
		x, y := hashes(i) // without a row, whose strings would be garbage
		a, amount = a+firstOf(x), amount+amountOf(y)
	}
	a += w.changed * updated
	got, err := w.table.Table.Aggregate(w.ctx,
		[]oribi.Aggregate{oribi.CountRows(), oribi.SumOf("a"), oribi.SumOf("amount")})
	if err != nil {
		return err
	}
	want := fmt.Sprint([]int64{w.Rows, a, amount})
	if have := fmt.Sprint(got.Groups[0].Values); have != want {
		return fmt.Errorf("count and sums are %s, want %s", have, want)
	}
	w.counts.Scanned += w.Rows
	return nil
}

// want returns row i as it is now.
func (w *work) want(i int64) row {
	r := rowOf(i)
	if i%strideOfUpdates == 0 && i/strideOfUpdates < w.changed {
		r.A += updated
	}
	return r
}

// get reads rows at random and compares them.
func (w *work) get() error { return w.getFrom(w.table, w.Gets) }

func (w *work) getFrom(t *oribi.TableOf[row], n int) error {
	for k := range n {
		i := w.random.Int64N(w.Rows)
		if k%3 == 0 {
			i -= i % strideOfUpdates
		}
		if k%8 == 0 {
			if has, err := t.Has(w.ctx, 2*i+1); err != nil || has {
				return errors.Join(err, fmt.Errorf("absent key %d: found: %v", 2*i+1, has))
			}
			continue
		}
		got, err := t.Get(w.ctx, 2*i)
		if err != nil {
			return err
		}
		if want := w.want(i); got != want {
			return fmt.Errorf("row %d is %v, want %v", i, got, want)
		}
	}
	w.counts.Gets += int64(n)
	return nil
}

// patch is an update of a row.
type patch struct {
	Key int64 `oribi:"key,key"`
	A   int64 `oribi:"a"`
}

// update updates each of the first rows that are a multiple of strideOfUpdates once, in a random
// order.
func (w *work) update() error {
	n := int(min(int64(w.Updates), (w.Rows+strideOfUpdates-1)/strideOfUpdates))
	b := w.store.NewBatch()
	for k, j := range w.random.Perm(n) {
		i := int64(j) * strideOfUpdates
		if err := oribi.PatchIn(b, w.table.Table, patch{2 * i, rowOf(i).A + updated}); err != nil {
			return err
		}
		if (k+1)%batchRows == 0 || k+1 == n {
			if _, err := b.Commit(w.ctx, oribi.NoSync); err != nil {
				return err
			}
			b.Reset()
		}
	}
	w.changed = int64(n)
	w.counts.Updates = int64(n)
	return nil
}

// follow reads the table through a follower, which has all rows and updates.
func (w *work) follow(dir string) (err error) {
	store, err := oribi.Open(dir, &oribi.Options{Follow: true, MemoryLimit: followerLimit})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	t, err := oribi.OpenTable[row](store, "rows")
	if err != nil {
		return err
	}
	return w.getFrom(t, w.Gets/10)
}

// backup backs the store up, if the disk has room for twice the copy.
func (w *work) backup() error {
	if vfs.OS.FreeBytes(w.Dir) < 2*w.counts.Disk<<20 {
		return nil
	}
	dir := filepath.Join(w.Dir, "backup")
	repository := backup.Open(backup.Dir(dir, vfs.OS))
	made, err := repository.Backup(w.ctx, w.store)
	if err != nil {
		return err
	}
	list, err := repository.Backups(w.ctx)
	if err != nil {
		return err
	}
	if len(list) != 1 || list[0].Number != made.Number {
		return fmt.Errorf("backups %v, want one", list)
	}
	w.counts.Copies++
	return os.RemoveAll(dir)
}
