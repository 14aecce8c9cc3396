package storetest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/damage"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/salvage"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// salvageCopies salvages damaged copies of random stores; only files for which damaged returns true
// are damaged.
func salvageCopies(t *testing.T, least int64, damaged func(name string) bool) damage.SalvageCounts {
	t.Helper()
	least = seedtest.Needed(least, least/2)
	seed := seedtest.Seed(t)
	cryptotest.SetGlobalRandom(t, seed) // for the names of containers, and the identities of stores and tables
	rng := rand.New(rand.NewPCG(seed, 7))
	var total damage.SalvageCounts
	for begin := time.Now(); total.Salvaged < least || time.Since(begin) < *forFlag; seed++ {
		d, err := damage.NewTiny(seed)
		if seed%2 == 0 {
			d, err = damage.New(seed, 40)
		}
		must.Do(t, err, "-seed", seed)
		for range 20 {
			s, err := d.RandomSalvage(rng, damaged)
			must.Do(t, err)
			var c damage.SalvageCounts
			within(t, minute, func() { c, err = s.Run() })
			total.Add(c)
			must.Do(t, err, "-seed", seed, s)
		}
	}
	t.Logf("%+v", total)
	return total
}

// Containers of closed stores are damaged in several places and salvaged: every row that the new
// store returns is right, and every loss is reported.
func TestSalvageOfDamagedBlocks(t *testing.T) {
	c := salvageCopies(t, 100, func(name string) bool { return strings.HasPrefix(name, "data/") })
	if c.Whole == 0 || c.Kept == 0 || c.Lost == 0 || c.Readable == 0 {
		t.Error("one of these outcomes never occurred")
	}
}

// Segments of the log are damaged. Rows that missing records changed are as before them. Later
// records are applied as far as they are known to be right.
func TestSalvageOfDamagedLog(t *testing.T) {
	c := salvageCopies(t, 100, func(name string) bool { return strings.HasPrefix(name, "wal/") })
	if c.Whole == 0 || c.Kept == 0 || c.Lost == 0 {
		t.Error("one of these outcomes never occurred")
	}
}

// Metadata, anchor and INSTANCE are damaged: JOURNAL has everything.
func TestSalvageOfDamagedMetadata(t *testing.T) {
	c := salvageCopies(t, 100, func(name string) bool {
		return name != blockmanager.JournalName && !strings.HasPrefix(name, "wal/") && !strings.HasPrefix(name, "data/")
	})
	if c.Lost > 0 || c.Whole < c.Salvaged {
		t.Error("something was lost")
	}
}

// Any files are damaged.
func TestSalvageOfDamagedStores(t *testing.T) {
	salvageCopies(t, 100, func(string) bool { return true })
}

// salvaged salvages /store to /out and returns the new store and the losses.
func salvaged(t *testing.T, mem vfs.FS, options ...salvage.Option) (*oribi.Store, []salvage.Loss) {
	t.Helper()
	var losses []salvage.Loss
	must.Do(t, vfs.RemoveAll(mem, "/out"))
	must.Get(salvage.Run(context.Background(), "/store", "/out", &oribi.Options{FS: mem}, func(l salvage.Loss) {
		losses = append(losses, l)
	}, options...))(t)
	s := must.Get(openCopy(mem, "/out"))(t)
	t.Cleanup(func() { s.Close() })
	return s, losses
}

// Metadata, anchor, and identity are gone, after a kill and after Close: everything is in the new
// store, as of every timestamp.
func TestSalvageWithoutMetadata(t *testing.T) {
	mem := vfs.NewMem()
	store := copiedStore(t, mem)
	images := map[string]*vfs.Mem{"killed": mem.Clone()}
	now := must.Get(store.Checkpoint(context.Background(), "/checkpoint"))(t)
	want := must.Get(openCopy(mem, "/checkpoint"))(t)
	defer want.Close()
	must.Do(t, store.Close())
	images["closed"] = mem
	for name, image := range images {
		t.Run(name, func(t *testing.T) {
			for _, gone := range []string{"/store/meta", "/store/ANCHOR", "/store/INSTANCE", "/store/LOCK"} {
				must.Do(t, vfs.RemoveAll(image, gone))
			}
			got, losses := salvaged(t, image)
			must.Equal(t, len(losses), 0, "lost", losses)
			must.Do(t, sameAsOf(want, got, now.Timestamp-1, now.Timestamp-1000, mvcc.Max))
		})
	}
}

// A crash at any operation of a salvage leaves no store or the whole one.
func TestCrashDuringSalvageLeavesNoStoreOrAWholeOne(t *testing.T) {
	r := seedtest.Rand(t)
	mem := vfs.NewMem()
	must.Do(t, copiedStore(t, mem).Close())
	flipInColumn(t, mem, "v", 0)
	disk := crashfs.New(mem)
	whole, none := 0, 0
	disk.OnOperation(func(c crashfs.Operation) error {
		for s := range c.Point().States(r.Uint64(), 1) {
			out, err := openCopy(s.Image, "/out")
			switch {
			case errors.Is(err, oribi.ErrNotStore):
				none++
			case err != nil:
				t.Errorf("%s of %s, %s: %v", c.Op, c.Name, s.Name, err)
			default:
				whole++
				out.Close()
			}
		}
		return nil
	})
	_, err := salvage.Run(context.Background(), "/store", "/out", &oribi.Options{FS: disk}, nil)
	disk.OnOperation(nil)
	if err != nil || none == 0 {
		t.Fatal(err, none)
	}
	for s := range disk.Point().States(r.Uint64(), 0) {
		out := must.Get(openCopy(s.Image, "/out"))(t)
		out.Close()
	}
}

// columnBlock returns where the base data of a column is, of the first rowset of the only table,
// and its cblocks.
func columnBlock(t *testing.T, mem *vfs.Mem, column string) (at blockmanager.BlockLocation,
	cblocks []cfile.BlockPointer, rows []int64) {
	t.Helper()
	m := openBlocks(t, mem)
	defer m.Close()
	var table *meta.Table
	var set *rowset.Metadata
	err := m.Rows(meta.TablePrefix(), func(_, value []byte) (err error) {
		table, err = meta.DecodeTable(value)
		return err
	})
	if err == nil {
		err = m.Rows(meta.RowSetPrefix(table.Number), func(_, value []byte) error {
			s, err := rowset.DecodeMetadata(value)
			if set == nil {
				set = s
			}
			return err
		})
	}
	must.Do(t, err)
	var id block.ID
	for _, c := range set.Columns {
		if table.Schema.Columns[table.Schema.IndexID(c.ID)].Name == column {
			id = c.Block
		}
	}
	src := must.Get(m.OpenBlock(id))(t)
	defer src.Close()
	r, err := cfile.Open(src, cfile.ReaderOptions{NoHeader: true})
	if err == nil {
		cblocks, err = r.BlockPointers()
	}
	must.Do(t, err)
	for row := int64(0); row < r.Rows(); {
		_, _, end, err := r.BlockOf(batch.Ordinal(row))
		must.Do(t, err)
		rows = append(rows, int64(end)-row)
		row = int64(end)
	}
	for _, p := range m.BlockLocations() {
		if p.ID == id {
			at = p
		}
	}
	return at, cblocks, rows
}

func openBlocks(t *testing.T, mem *vfs.Mem) *blockmanager.Manager {
	t.Helper()
	s := must.Get(oribi.Open("/store", &oribi.Options{FS: mem, ReadOnly: true}))(t)
	info, err := s.Info()
	s.Close()
	o := blockmanager.Options{FS: mem, Dir: "/store", ReadOnly: true}
	if err == nil {
		_, err = hex.Decode(o.Instance[:], []byte(info.UUID))
	}
	must.Do(t, err)
	return must.Get(blockmanager.Open(o))(t)
}

// flipInColumn damages a cblock of a column and returns how many rows it has.
func flipInColumn(t *testing.T, mem *vfs.Mem, column string, cblock int) (rows int64) {
	t.Helper()
	at, cblocks, counts := columnBlock(t, mem, column)
	flipByte(t, mem, "/store/"+at.File, at.Offset+int64(cblocks[cblock].Offset)+5)
	return counts[cblock]
}

func flipByte(t *testing.T, mem *vfs.Mem, name string, off int64) {
	t.Helper()
	f := must.Get(mem.Open(name, true))(t)
	defer f.Close()
	var b [1]byte
	must.Get(f.ReadAt(b[:], off))(t)
	b[0] ^= 0x40
	must.Get(f.WriteAt(b[:], off))(t)
}

// One damaged cblock costs the rows that it has, and no others. With FillNull it costs none if the
// column is nullable: the cells are NULL, and the column is named.
func TestOneBadCblockCostsOnlyItsRows(t *testing.T) {
	const rows = 20000
	ctx := context.Background()
	mem := vfs.NewMem()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: mem, Manual: true}))(t)
	small := int32(4096)
	columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		{Name: "a", Type: schema.Int64, BlockBytes: small},
		{Name: "n", Type: schema.Int64, Nullable: true, BlockBytes: small}}, 1))(t)
	table := must.Get(store.CreateTable("t", columns, oribi.RowFile(schema.NoRowFile)))(t)
	b := store.NewBatch()
	for k := range rows {
		b.Insert(table, oribi.Row{"k": k, "a": k * k % 7919, "n": k * 3 % 10007})
	}
	must.Get(b.Commit(ctx))(t)
	must.Do(t, table.Flush(ctx))
	must.Do(t, store.Close())
	for _, test := range []struct {
		column string
		fill   bool
		lost   string
	}{{"a", false, `column "a": versions of %d rows, the newest of %[1]d`},
		{"a", true, `column "a": versions of %d rows, the newest of %[1]d`},
		{"n", false, `column "n": versions of %d rows, the newest of %[1]d`},
		{"n", true, `column "n": filled with NULL in %d rows, in the newest version of %[1]d`}} {
		image := mem.Clone()
		n := flipInColumn(t, image, test.column, 1)
		var options []salvage.Option
		if test.fill {
			options = append(options, salvage.FillNull())
		}
		out, losses := salvaged(t, image, options...)
		if len(losses) != 1 || losses[0].Rows != n || losses[0].Table != "t" || losses[0].Block == 0 ||
			!strings.HasPrefix(losses[0].Lost, fmt.Sprintf(test.lost, n)) {
			t.Errorf("%+v: %d rows in the cblock, losses %+v", test, n, losses)
		}
		want := rows - n
		if test.fill && test.column == "n" {
			want = rows
		}
		saved := must.Get(out.Table("t"))(t)
		must.Equal(t, must.Get(saved.Count(ctx))(t), want, test, "rows")
	}
}

// Salvage refuses an output that exists and an input that is no store, and changes nothing.
func TestSalvageRefusesWrongDirectories(t *testing.T) {
	mem := vfs.NewMem()
	store := copiedStore(t, mem)
	run := func(dir, out string) error {
		_, err := salvage.Run(context.Background(), dir, out, &oribi.Options{FS: mem}, nil)
		return err
	}
	must.Fail(t, run("/store", "/out"), oribi.ErrLocked, "a store with a writer")
	must.Do(t, store.Close())
	must.Do(t, errors.Join(mem.Mkdir("/empty"), mem.Mkdir("/other"), mem.Mkdir("/other/x")))
	before := must.Get(files.Fingerprint(mem, "/"))(t)
	for _, test := range []struct {
		dir, out string
		want     error
	}{{"/store", "/other", fs.ErrExist}, {"/store", "/no/out", fs.ErrNotExist}, {"/store", "/store/out", nil},
		{"/nowhere", "/out", oribi.ErrNotStore},
		{"/empty", "/out", oribi.ErrNotStore}, {"/other", "/out", oribi.ErrNotStore}} {
		if err := run(test.dir, test.out); err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s to %s: %v", test.dir, test.out, err)
		}
	}
	must.Equal(t, before, must.Get(files.Fingerprint(mem, "/"))(t), "something was changed")
}

// A writer removes no file that is not the store's own, whatever its name is, also where data/ and
// wal/ are symbolic links.
func TestWritersLeaveForeignFilesAlone(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "store")
	store := must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(t)
	fillNumbers(t, store, numbersTable(t, store, "numbers"), 0, 100)
	must.Do(t, store.Close())
	for _, sub := range []string{"data", "wal"} {
		must.Do(t, errors.Join(os.Rename(filepath.Join(dir, sub), filepath.Join(base, sub)),
			os.Symlink(filepath.Join(base, sub), filepath.Join(dir, sub))))
	}
	foreign := map[string]string{
		"data/0123456789abcdef0123456789abcdef.data": strings.Repeat("somebody's", 1000),
		"data/notes.txt": "notes",
		"data/0123456789ABCDEF0123456789ABCDEF.data": "capitals",
		"wal/000000000000.wal":                       "not a number of a segment",
		"wal/notes.txt":                              "notes",
		"wal/1.wal":                                  "short",
	}
	for name, content := range foreign {
		must.Do(t, os.WriteFile(filepath.Join(base, name), []byte(content), 0o600))
	}
	own := filepath.Join(base, "data", "fedcba9876543210fedcba9876543210.data") // as a crash leaves it
	must.Do(t, os.WriteFile(own, make([]byte, 100), 0o600))
	for range 2 {
		store := must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(t)
		must.Equal(t, countNumbers(t, store), 100, "rows")
		must.Do(t, store.Close())
	}
	for name, content := range foreign {
		if b, err := os.ReadFile(filepath.Join(base, name)); err != nil || string(b) != content {
			t.Errorf("%s: %v, %d bytes", name, err, len(b))
		}
	}
	must.Fail(t, must.Err(os.Stat(own)), fs.ErrNotExist, "a container that a crash has left is still there")
}
