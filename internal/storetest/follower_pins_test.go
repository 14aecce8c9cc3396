package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// followedStore opens a store with a table of n flushed rows.
func followedStore(t *testing.T, fsys vfs.FS, n int, o oribi.Options) (*oribi.Store, *oribi.Table) {
	t.Helper()
	o.FS, o.Manual = fsys, true
	store := must.Get(oribi.Open("/store", &o))(t)
	t.Cleanup(func() { store.Close() })
	table := numbersTable(t, store, "numbers")
	fillNumbers(t, store, table, 0, n)
	must.Do(t, table.Flush(t.Context()))
	return store, table
}

func openFollower(t *testing.T, fsys vfs.FS) *oribi.Store {
	t.Helper()
	s := must.Get(oribi.Open("/store", &oribi.Options{FS: fsys, Follow: true}))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// rewrite replaces the blocks of a table, twice, so that the first ones are dropped and confirmed
// to be.
func rewrite(t *testing.T, store *oribi.Store, table *oribi.Table, n int) {
	t.Helper()
	for round := range 2 {
		b := store.NewBatch()
		for k := range n {
			b.Update(table, oribi.Row{"k": k, "v": 1000*round + k})
		}
		_, err := b.Commit(t.Context())
		for _, do := range []func(context.Context) error{table.Flush, table.Compact, table.Compact} {
			if err == nil {
				err = do(t.Context())
			}
		}
		must.Do(t, err)
	}
	createAndDrop(t, store) // confirms, and frees what may be freed
}

func createAndDrop(t *testing.T, store *oribi.Store) {
	t.Helper()
	numbersTable(t, store, "other")
	must.Do(t, store.DropTable("other"))
}

func deadBytes(t *testing.T, store *oribi.Store) int64 {
	t.Helper()
	info := must.Get(store.Info())(t)
	return info.Bytes.Dead
}

// What a follower reads stays on the disk as long as it is open, and no longer.
func TestWriterKeepsBlocksForFollower(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	store, table := followedStore(t, mem, 500, oribi.Options{})
	follower := openFollower(t, mem)
	rewrite(t, store, table, 500)
	kept := deadBytes(t, store)
	must.Equal(t, countNumbers(t, follower), 500, "rows of the follower")
	must.Do(t, follower.Close())
	createAndDrop(t, store)
	if now := deadBytes(t, store); kept == 0 || now >= kept {
		t.Errorf("%d dead bytes with a follower, %d without", kept, now)
	}
	if names, err := mem.List("/store/readers"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("readers/ contains %v, %v", names, err)
	}
}

// What a follower reads is kept for Options.FollowerLag, though the follower is still open.
func TestWriterKeepsBlocksForLimitedTime(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	store, table := followedStore(t, mem, 500, oribi.Options{FollowerLag: time.Nanosecond})
	openFollower(t, mem)
	rewrite(t, store, table, 500)
	must.Equal(t, deadBytes(t, store), 0, "dead bytes")
}

// readOnlyFS returns a file system in which nothing can be written or locked.
func readOnlyFS(base vfs.FS) vfs.FS {
	f := faultfs.New(base)
	f.Watch(func(c faultfs.Call) error {
		if c.Changes() || c.Op == faultfs.Lock {
			return &fs.PathError{Op: string(c.Op), Path: c.Name, Err: syscall.EROFS}
		}
		return nil
	})
	return f
}

// kv is a row of the table that followers read.
type kv struct {
	K int64 `oribi:"k,key"`
	V int64 `oribi:"v"`
}

// readsOfNewest are reads of row 77, or of all rows, that return the sum of v that they have read.
var readsOfNewest = map[string]func(ctx context.Context, t *oribi.Table) (int64, error){
	"Get": func(ctx context.Context, t *oribi.Table) (int64, error) {
		row, err := t.Get(ctx, 77)
		if err != nil {
			return 0, err
		}
		return row["v"].(int64), nil
	},
	"GetCells": func(ctx context.Context, t *oribi.Table) (int64, error) {
		_, cells, err := t.GetCells(ctx, 77)
		return cellOf(cells, err)
	},
	"AppendCells": func(ctx context.Context, t *oribi.Table) (int64, error) {
		return cellOf(t.AppendCells(ctx, nil, 77))
	},
	"Has": func(ctx context.Context, t *oribi.Table) (int64, error) {
		found, err := t.Has(ctx, 77)
		if err != nil || !found {
			return 0, err
		}
		return 1077, nil
	},
	"Explain": func(ctx context.Context, t *oribi.Table) (int64, error) {
		tr, err := t.Explain(ctx, 77)
		if err != nil || len(tr.Steps) == 0 {
			return 0, err
		}
		return 1077, nil
	},
	"GetMany": func(ctx context.Context, t *oribi.Table) (int64, error) {
		rows, err := t.GetMany(ctx, []any{77, 900})
		if err != nil || rows[1] != nil {
			return 0, err
		}
		return rows[0]["v"].(int64), nil
	},
	"GetManyCells": func(ctx context.Context, t *oribi.Table) (int64, error) {
		_, rows, err := t.GetManyCells(ctx, []any{900, 77})
		if err != nil || rows[0] != nil {
			return 0, err
		}
		return cellOf(rows[1], err)
	},
	"GetAs": func(ctx context.Context, t *oribi.Table) (int64, error) {
		row, err := oribi.GetAs[kv](ctx, t, 77)
		return row.V, err
	},
	"Count": func(ctx context.Context, t *oribi.Table) (int64, error) {
		n, err := t.Count(ctx, oribi.Where(oribi.Eq("v", 1077)))
		return 1077 * n, err
	},
	"Aggregate": func(ctx context.Context, t *oribi.Table) (int64, error) {
		res, err := t.Aggregate(ctx, []oribi.Aggregate{oribi.MaxOf("v")}, oribi.Where(oribi.Eq("k", 77)))
		if err != nil {
			return 0, err
		}
		return res.Groups[0].Values[0].Any().(int64), nil
	},
	"History": func(ctx context.Context, t *oribi.Table) (int64, error) {
		for v, err := range t.History(ctx, 77) {
			if err != nil {
				return 0, err
			}
			return v.Row()["v"].(int64), nil
		}
		return 0, nil
	},
	"Scan": func(ctx context.Context, t *oribi.Table) (int64, error) {
		sum := int64(0)
		for row, err := range t.Scan(ctx, oribi.Where(oribi.Eq("k", 77))).Rows() {
			if err != nil {
				return 0, err
			}
			sum += row["v"].(int64)
		}
		return sum, nil
	},
}

func cellOf(cells [][]byte, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint64(cells[1])), nil
}

// A writer that keeps nothing punches the blocks of a follower. A read as of a timestamp says so,
// and does not call it damage. A read of the newest state, which has returned nothing yet, begins
// again on a newer one.
func TestFollowerWithoutPin(t *testing.T) {
	needFollowers(t)
	for _, test := range []struct {
		name string
		lag  bool // the writer keeps nothing; else the follower cannot write its pin
	}{{"lag=none", true}, {"pin=none", false}} {
		for verb, read := range readsOfNewest {
			t.Run(test.name+"/"+verb, func(t *testing.T) {
				mem := vfs.NewMem()
				o, view := oribi.Options{}, vfs.FS(mem)
				if test.lag {
					o.FollowerLag = -1
				} else {
					view = readOnlyFS(mem)
				}
				store, table := followedStore(t, mem, 500, o)
				follower := openFollower(t, view)
				rewrite(t, store, table, 500)
				must.Equal(t, deadBytes(t, store), 0, "dead bytes")
				numbers, err := follower.Table("numbers")
				must.Do(t, err)
				_, err = numbers.Get(t.Context(), 77, oribi.AsOf(follower.Visible()))
				if !errors.Is(err, oribi.ErrTooOld) || errors.Is(err, oribi.ErrCorrupt) {
					t.Errorf("a read of a punched block: %v, want ErrTooOld", err)
				}
				must.Equal(t, must.Get(read(t.Context(), numbers))(t), 1077)
			})
		}
	}
}

// A scan that has yielded rows does not begin again on a newer state: the rows after them would be
// of another moment.
func TestScanWithRowsDoesNotRestart(t *testing.T) {
	needFollowers(t)
	const n = 100_000
	mem := vfs.NewMem()
	store, err := oribi.Open("/store", &oribi.Options{FS: mem, Manual: true, FollowerLag: -1})
	must.Do(t, err)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	b := store.NewBatch()
	for k := range n {
		b.Insert(table, oribi.Row{"k": k, "v": k * k * 77777})
	}
	if _, err = b.Commit(t.Context()); err == nil {
		err = table.Flush(t.Context())
	}
	must.Do(t, err)
	follower := openFollower(t, mem)
	numbers := must.Get(follower.Table("numbers"))(t)
	rows := 0
	for row, scanErr := range numbers.Scan(t.Context()).Rows() {
		if err = scanErr; err != nil {
			break
		}
		if row["k"] != int64(rows) || row["v"] != int64(rows*rows*77777) {
			t.Fatalf("row %d is %v", rows, row)
		}
		if rows++; rows == 1 {
			rewrite(t, store, table, n/10)
		}
	}
	if !errors.Is(err, oribi.ErrTooOld) || rows == 0 || rows == n {
		t.Errorf("the scan ends after %d rows with %v, want ErrTooOld", rows, err)
	}
}

// A follower pins what it reads before it reads anything: the writer drops blocks as soon as the
// follower has read the metadata, and keeps their space.
func TestFollowerPinsBeforeItReads(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	store, table := followedStore(t, mem, 500, oribi.Options{})
	before := store.Visible()
	view := faultfs.New(mem)
	read, kept := false, int64(0)
	view.Watch(func(c faultfs.Call) error {
		if strings.Contains(c.Name, "/data/") && !read {
			read = true
			rewrite(t, store, table, 500)
			kept = deadBytes(t, store)
		}
		return nil
	})
	follower := openFollower(t, view)
	numbers := must.Get(follower.Table("numbers"))(t)
	row, err := numbers.Get(t.Context(), 77, oribi.AsOf(before))
	if err != nil || row["v"] != int64(-77) || kept == 0 {
		t.Errorf("%v, %v; the writer has kept %d bytes", row, err, kept)
	}
}

// Damage is damage, also in a follower whose writer has gone on: the block is still one.
func TestFollowerReportsDamage(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	store, _ := followedStore(t, mem, 500, oribi.Options{})
	view := faultfs.New(mem)
	follower := openFollower(t, view)
	names := must.Get(mem.List("/store/data"))(t)
	must.Equal(t, len(names), 1, names)
	f := must.Get(mem.Open("/store/data/"+names[0], true))(t)
	defer f.Close()
	size := must.Get(f.Size())(t)
	must.Get(f.WriteAt(make([]byte, size-4096), 4096))(t)
	visible := follower.Visible()
	for range 2 {
		numbers := must.Get(follower.Table("numbers"))(t)
		for _, opts := range [][]oribi.GetOption{nil, {oribi.AsOf(visible)}} {
			if _, err := numbers.Get(t.Context(), 77, opts...); !errors.Is(err, oribi.ErrCorrupt) ||
				errors.Is(err, oribi.ErrTooOld) {
				t.Errorf("got %v, want ErrCorrupt", err)
			}
		}
		createAndDrop(t, store)
		// The newest metadata cannot be read at once.
		failures := 2
		view.Watch(func(c faultfs.Call) error {
			if c.Op == faultfs.List && strings.HasSuffix(c.Name, "/meta") && failures > 0 {
				failures--
				return syscall.EIO
			}
			return nil
		})
	}
}

// A store whose metadata is damaged is refused, as it is without Follow: nothing changes, so no
// writer can have caused it.
func TestFollowerRefusesDamagedMetadata(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	store, _ := followedStore(t, mem, 10, oribi.Options{})
	must.Do(t, store.Close())
	f := must.Get(mem.Open("/store/ANCHOR", true))(t)
	defer f.Close()
	must.Get(f.WriteAt(make([]byte, 8192), 0))(t)
	if _, err := oribi.Open("/store", &oribi.Options{FS: mem, Follow: true}); !errors.Is(err, oribi.ErrCorrupt) ||
		errors.Is(err, oribi.ErrLocked) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

// A follower does not take a log for the end of the store if the metadata went back, nor metadata
// for the newest if the log did: both are damage.
func TestFollowerReportsStoreThatWentBack(t *testing.T) {
	needFollowers(t)
	for _, what := range []string{"metadata", "log"} {
		t.Run(what, func(t *testing.T) {
			mem := vfs.NewMem()
			store, table := followedStore(t, mem, 10, oribi.Options{})
			before := mem.Clone()
			createAndDrop(t, store)
			fillNumbers(t, store, table, 10, 20)
			view := faultfs.New(mem)
			follower := openFollower(t, view)
			createAndDrop(t, store)
			fillNumbers(t, store, table, 20, 30)
			if what == "log" { // of which the metadata says how long it was
				must.Do(t, table.Flush(t.Context()))
			}
			view.SetBase(wentBackFS{FS: mem, before: before, log: what == "log"})
			damaged := func(err error) bool {
				return errors.Is(err, oribi.ErrCorrupt) && !errors.Is(err, oribi.ErrLocked)
			}
			if err := follower.Refresh(t.Context()); !damaged(err) {
				t.Errorf("refresh: %v, want ErrCorrupt", err)
			}
			must.Equal(t, countNumbers(t, follower), 20, "rows after the refresh has failed")
			s, err := oribi.Open("/store", &oribi.Options{FS: view, Follow: true})
			if err == nil {
				s.Close()
			}
			if !damaged(err) {
				t.Errorf("open: %v, want ErrCorrupt", err)
			}
		})
	}
}

// wentBackFS is a file system in which the log of a store, or all else, is as before.
type wentBackFS struct {
	vfs.FS
	before vfs.FS
	log    bool
}

func (f wentBackFS) of(name string) vfs.FS {
	if strings.HasPrefix(name, "/store/wal") == f.log && !strings.HasSuffix(name, "LOCK") &&
		!strings.Contains(name, "readers") {
		return f.before
	}
	return f.FS
}

func (f wentBackFS) Open(name string, write bool) (vfs.File, error) {
	return f.of(name).Open(name, write)
}
func (f wentBackFS) List(name string) ([]string, error)    { return f.of(name).List(name) }
func (f wentBackFS) Stat(name string) (fs.FileInfo, error) { return f.of(name).Stat(name) }

// The pin of a process that was killed has no lock: it has no effect, and a writer removes it.
func TestPinOfEndedFollowerIsRemoved(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	store, table := followedStore(t, mem, 500, oribi.Options{})
	must.Do(t, mem.Mkdir("/store/readers"))
	for _, name := range []string{"0123456789abcdef.pin", "note.txt"} {
		f := must.Get(mem.Create("/store/readers/" + name))(t)
		f.Close()
	}
	rewrite(t, store, table, 500)
	must.Equal(t, deadBytes(t, store), 0, "dead bytes")
	if names, _ := mem.List("/store/readers"); fmt.Sprint(names) != "[note.txt]" {
		t.Errorf("readers/ contains %v", names)
	}
}

// A store that followers have read is a store, and so is an unfinished one; du knows their files.
func TestReadersDirectoryBelongsToTheStore(t *testing.T) {
	needFollowers(t)
	dir := t.TempDir() + "/store"
	store := must.Get(oribi.Open(dir, &oribi.Options{Manual: true}))(t)
	defer store.Close()
	follower := must.Get(oribi.Open(dir, &oribi.Options{Follow: true}))(t)
	defer follower.Close()
	for _, s := range []*oribi.Store{store, follower} {
		must.Equal(t, must.Get(s.DiskUsage())(t).Foreign, 0, "foreign bytes")
	}
	if entries, err := os.ReadDir(dir + "/readers"); err != nil || len(entries) != 1 {
		t.Errorf("readers/ contains %v, %v", entries, err)
	}
}

// A checkpoint of a follower is the state that it has, while the writer goes on and removes what it
// can.
func TestCheckpointOfFollower(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	store, table := followedStore(t, mem, 500, oribi.Options{LogSegmentBytes: 4096})
	fillNumbers(t, store, table, 500, 600)
	follower := openFollower(t, mem)
	im := must.Get(follower.Image(t.Context()))(t)
	defer im.Close()
	for range 2 {
		rewrite(t, store, table, 600)
		must.Do(t, follower.Refresh(t.Context()))
	}
	must.Get(oribi.WriteImage(t.Context(), "/copy", im, &oribi.Options{FS: mem}))(t)
	copied := must.Get(oribi.Open("/copy", &oribi.Options{FS: mem, ReadOnly: true}))(t)
	defer copied.Close()
	must.Equal(t, countNumbers(t, copied), 600, "rows")
}
