package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/backup"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

var ctx = context.Background()

// digest is the content of a store at its newest timestamp, by table.
type digest map[string][16]byte

func digestOf(s *oribi.Store) (digest, error) {
	d := digest{}
	for _, t := range s.Tables() {
		sum, _, err := model.StoreDigest(ctx, t, mvcc.Max)
		if err != nil {
			return nil, err
		}
		d[t.Name()] = sum
	}
	return d, nil
}

// restored restores a backup to a new directory, verifies it, and returns its content.
func restored(repo *backup.Repository, n uint64, fsys vfs.FS) (digest, error) {
	defer vfs.RemoveAll(fsys, "/restored")
	if _, err := repo.Restore(ctx, n, "/restored", &oribi.Options{FS: fsys}); err != nil {
		return nil, err
	}
	s, err := oribi.Open("/restored", &oribi.Options{FS: fsys, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := model.Verified(s); err != nil {
		return nil, err
	}
	return digestOf(s)
}

// Plan: random histories on a disk that crashes. Now and then a backup is made, restored and
// compared with the model; now and then the repository is pruned. In the end each backup that is
// left restores to the same state as at first.
func TestBackupsOfHistoriesAgreeWithModel(t *testing.T) {
	seed, rng := seedtest.Seed(t), seedtest.Rand(t)
	made := 0
	for range seedtest.Rounds(20, 5) {
		seed++
		mem := vfs.NewMem()
		repo := backup.Open(backup.Dir("/repo", mem))
		settings := history.SmallSettings(seed)
		r, g := history.NewRunner(settings), history.NewGenerator(settings)
		first := map[uint64]digest{}
		for n := 0; n < 300 && r.Err == nil; n++ {
			if !r.Do(g.Next(r)) {
				break
			}
			if rng.IntN(30) > 0 {
				continue
			}
			b, err := repo.Backup(ctx, r.Store)
			must.Do(t, err, "seed", seed)
			made++
			c, err := repo.Restore(ctx, 0, "/copy", &oribi.Options{FS: mem})
			must.Do(t, err)
			must.Equal(t, c.Timestamp, b.Timestamp, "seed", seed, c, "of", b)
			first[b.Number], err = restored(repo, b.Number, mem)
			must.Do(t, err, "seed", seed)
			must.Do(t, errors.Join(r.CompareCopy(mem, "/copy", c), vfs.RemoveAll(mem, "/copy")),
				"seed", seed, "backup", b.Number)
			if rng.IntN(4) == 0 {
				keep := 1 + rng.IntN(4)
				p := must.Get(repo.Prune(ctx, keep))(t)
				must.Equal(t, p.Removed, max(0, len(first)-keep), "seed", seed, p, "of", len(first))
				numbers := slices.Sorted(maps.Keys(first))
				for _, n := range numbers[:p.Removed] {
					delete(first, n)
				}
			}
		}
		r.Close()
		must.Do(t, r.Err, "seed", seed)
		list := must.Get(repo.Backups(ctx))(t)
		must.Equal(t, len(list), len(first), "seed", seed, "backups")
		for _, b := range list {
			must.Equal(t, must.Get(restored(repo, b.Number, mem))(t), first[b.Number],
				"seed", seed, "backup", b.Number, "other rows than at first")
		}
	}
	t.Logf("%d backups", made)
}

// smallStore opens a store with a table of some rowsets.
func smallStore(t *testing.T, fsys vfs.FS, dir string) (*oribi.Store, *oribi.Table) {
	t.Helper()
	s := must.Get(oribi.Open(dir, &oribi.Options{FS: fsys, History: oribi.HistoryForever,
		Manual: true, RowSetBytes: 1 << 12}))(t)
	columns := must.Get(
		schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.String}}, 1))(t)
	table := must.Get(s.CreateTable("t", columns))(t)
	return s, table
}

// put writes rows [from, to) and flushes them.
func put(t *testing.T, s *oribi.Store, table *oribi.Table, from, to int) {
	t.Helper()
	b := s.NewBatch()
	for k := from; k < to; k++ {
		b.Upsert(table, oribi.Row{"k": k, "v": fmt.Sprintf("row %d of [%d, %d)", k, from, to)})
	}
	must.Get(b.Commit(ctx))(t)
	must.Do(t, table.Flush(ctx))
}

// objects returns the objects of a repository with their lengths.
func objects(t *testing.T, s backup.Storage) map[string]int64 {
	t.Helper()
	list := map[string]int64{}
	must.Do(t, s.List(ctx, "", func(name string, n int64) error { list[name] = n; return nil }))
	return list
}

func sum(objects map[string]int64) (n int64) {
	for _, size := range objects {
		n += size
	}
	return n
}

// A second backup adds the blocks that are new, and nothing else; the backup of a copy of the
// store, which has another UUID, shares them. Prune leaves exactly what the remaining backups need.
func TestBackupsShareBlocks(t *testing.T) {
	mem := vfs.NewMem()
	s, table := smallStore(t, mem, "/store")
	defer s.Close()
	put(t, s, table, 0, 3000)
	storage := backup.Dir("/repo", mem)
	repo := backup.Open(storage)
	var done, total int64
	repo.Progress = func(d, of int64) { done, total = d, of }
	backupOf := func(s *oribi.Store) backup.Backup {
		before := sum(objects(t, storage))
		b := must.Get(repo.Backup(ctx, s))(t)
		after := sum(objects(t, storage))
		if before > 0 {
			before += 0
		} else {
			before = 16 // the format
		}
		if added := after - before - 116; added != b.NewBytes { // 116: the summary
			t.Errorf("backup %d added %d bytes, says %d", b.Number, added, b.NewBytes)
		}
		return b
	}
	first := backupOf(s)
	if done != total || done == 0 {
		t.Errorf("progress %d of %d", done, total)
	}
	if first.Number != 1 || first.Bytes != first.NewBytes || first.Bytes < 10_000 {
		t.Errorf("%+v", first)
	}
	again := backupOf(s)
	if again.Bytes < first.Bytes/2 || again.NewBytes > again.Bytes/5 {
		t.Errorf("nothing has changed: %+v", again)
	}
	put(t, s, table, 10_000, 10_100)
	third := backupOf(s)
	if third.NewBytes <= again.NewBytes || third.NewBytes > third.Bytes/3 {
		t.Errorf("a hundred rows: %+v, after %+v", third, again)
	}
	must.Do(t, must.Err(repo.Restore(ctx, 3, "/copy", &oribi.Options{FS: mem})))
	c, err := oribi.Open("/copy", &oribi.Options{FS: mem, ReadOnly: true})
	must.Do(t, err)
	defer c.Close()
	if other := backupOf(c); other.Store == third.Store || other.NewBytes > other.Bytes/3 {
		t.Errorf("of the copy: %+v", other)
	}
	must.Do(t, table.Compact(ctx))
	put(t, s, table, 0, 3000)
	must.Do(t, table.Compact(ctx))
	last := backupOf(s)
	before := sum(objects(t, storage))
	p, err := repo.Prune(ctx, 1)
	if err != nil || p.Removed != 4 || before-sum(objects(t, storage)) != p.FreedBytes || p.FreedBytes == 0 {
		t.Errorf("%+v of %d bytes, %v", p, before, err)
	}
	must.Equal(t, sum(objects(t, storage)), last.Bytes+16+116, "bytes left")
	want, err := digestOf(s)
	must.Do(t, err)
	must.Equal(t, must.Get(restored(repo, last.Number, mem))(t), want, "other rows")
	next, err := repo.Backup(ctx, s)
	must.Do(t, err)
	must.Equal(t, next.Number, 6, next)
}

// Refusals change nothing: no repository, no backup of a number, an existing directory, other
// files, a second writer, a canceled context.
func TestRefusals(t *testing.T) {
	mem := vfs.NewMem()
	s, table := smallStore(t, mem, "/store")
	defer s.Close()
	put(t, s, table, 0, 100)
	storage := backup.Dir("/repo", mem)
	repo := backup.Open(storage)
	want := func(what string, err, target error) {
		t.Helper()
		must.Fail(t, err, target, what)
	}
	_, err := repo.Backups(ctx)
	want("missing: list", err, backup.ErrNotRepository)
	_, err = repo.Restore(ctx, 0, "/copy", &oribi.Options{FS: mem})
	want("missing: restore", err, backup.ErrNotRepository)
	_, err = repo.Prune(ctx, 1)
	want("missing: prune", err, backup.ErrNotRepository)
	must.Fail(t, must.Err(mem.Stat("/repo")), fs.ErrNotExist, "they made the directory")
	_, err = backup.Open(backup.Dir("/missing/repo", mem)).Backup(ctx, s)
	want("no parent", err, fs.ErrNotExist)
	_, err = backup.Open(backup.Dir("/store", mem)).Backup(ctx, s)
	want("a store", err, backup.ErrNotRepository)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = repo.Backup(canceled, s)
	want("canceled", err, context.Canceled)
	must.Get(repo.Backup(ctx, s))(t)
	before := objects(t, storage)
	_, err = repo.Restore(ctx, 2, "/copy", &oribi.Options{FS: mem})
	want("no such backup", err, backup.ErrNotFound)
	_, err = repo.Restore(ctx, 0, "/store", &oribi.Options{FS: mem})
	want("existing directory", err, fs.ErrExist)
	_, err = repo.Prune(ctx, 0)
	must.Refuse(t, err, "prune kept none")
	l := must.Get(storage.Lock(ctx, true))(t)
	_, err = repo.Backup(ctx, s)
	want("backup while it is locked", err, backup.ErrLocked)
	_, err = repo.Prune(ctx, 1)
	want("prune while it is locked", err, backup.ErrLocked)
	_, err = repo.Restore(ctx, 0, "/copy", &oribi.Options{FS: mem})
	want("restore while it is locked", err, backup.ErrLocked)
	if list, err := repo.Backups(ctx); err != nil || len(list) != 1 {
		t.Errorf("list while it is locked: %v, %v", list, err)
	}
	l.Close()
	if after := objects(t, storage); !maps.Equal(before, after) {
		t.Errorf("%v, before %v", after, before)
	}
	must.Fail(t, must.Err(mem.Stat("/copy")), fs.ErrNotExist, "a copy is left")
}

// repositoryAt is a store, and a repository with two backups of it.
func repositoryAt(t *testing.T, fsys vfs.FS) (s *oribi.Store, repo *backup.Repository, first map[uint64]digest) {
	t.Helper()
	s, table := smallStore(t, fsys, "/store")
	repo = backup.Open(backup.Dir("/repo", fsys))
	first = map[uint64]digest{}
	for i := range 2 {
		put(t, s, table, 300*i, 300*i+600)
		b := must.Get(repo.Backup(ctx, s))(t)
		first[b.Number] = must.Get(digestOf(s))(t)
	}
	put(t, s, table, 100, 500)
	return s, repo, first
}

// checkWhole restores each backup that is listed, of which min must be there, and makes another
// one.
func checkWhole(fsys vfs.FS, s *oribi.Store, want map[uint64]digest, min uint64) error {
	repo := backup.Open(backup.Dir("/repo", fsys))
	list, err := repo.Backups(ctx)
	if err != nil {
		return err
	}
	numbers := []uint64{}
	for _, b := range list {
		numbers = append(numbers, b.Number)
		if got, err := restored(repo, b.Number, fsys); err != nil || !maps.Equal(got, want[b.Number]) {
			return fmt.Errorf("backup %d: other rows, %w", b.Number, err)
		}
	}
	for n := min; n <= 2; n++ {
		if !slices.Contains(numbers, n) {
			return fmt.Errorf("backup %d is missing: %v", n, numbers)
		}
	}
	b, err := repo.Backup(ctx, s)
	if err != nil {
		return fmt.Errorf("the next backup: %w", err)
	}
	now, err := digestOf(s)
	if err != nil {
		return err
	}
	if got, err := restored(repo, b.Number, fsys); err != nil || !maps.Equal(got, now) {
		return fmt.Errorf("the next backup, %d: other rows, %w", b.Number, err)
	}
	if _, err := repo.Prune(ctx, 1); err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	// After it, the repository has the objects of the last backup and nothing else.
	total := int64(0)
	err = backup.Dir("/repo", fsys).List(ctx, "", func(_ string, n int64) error { total += n; return nil })
	if total != b.Bytes+16+116 {
		err = errors.Join(err, fmt.Errorf("%d bytes are left, the backup has %d", total, b.Bytes))
	}
	return err
}

// harmed are the operations on a repository that are interrupted; after each, at least backup min
// is still there.
var harmed = []struct {
	name string
	min  uint64
	do   func(repo *backup.Repository, s *oribi.Store) error
}{
	{"backup", 1, func(repo *backup.Repository, s *oribi.Store) error { _, err := repo.Backup(ctx, s); return err }},
	{"prune", 2, func(repo *backup.Repository, _ *oribi.Store) error { _, err := repo.Prune(ctx, 1); return err }},
}

// A crash at any operation of a backup or prune leaves a repository whose backups are whole, and
// which can be used.
func TestCrashLeavesWholeBackups(t *testing.T) {
	for _, h := range harmed {
		t.Run(h.name, func(t *testing.T) {
			r := seedtest.Rand(t)
			disk := crashfs.New(vfs.NewMem())
			s, repo, want := repositoryAt(t, disk)
			defer s.Close()
			var err error
			want[3] = must.Get(digestOf(s))(t)
			type crash struct {
				op, name, state string
				image           *vfs.Mem
			}
			var crashes []crash
			disk.OnOperation(func(c crashfs.Operation) error {
				if !strings.HasPrefix(c.Name, "/repo") || r.IntN(seedtest.Stride(2)) > 0 {
					return nil
				}
				for x := range c.Point().States(r.Uint64(), 2) {
					crashes = append(crashes, crash{c.Op, c.Name, x.Name, x.Image})
				}
				return nil
			})
			err = h.do(repo, s)
			disk.OnOperation(nil)
			must.Do(t, err)
			for _, x := range crashes {
				must.Do(t, checkWhole(x.image, s, want, h.min), x.op, "of", x.name, x.state)
			}
			t.Logf("%d crashes", len(crashes))
			if len(crashes) == 0 {
				t.Error("no crash")
			}
		})
	}
}

// Each failure of a call, with EIO and with ENOSPC, ends a backup or prune with an error, or does
// not matter, and leaves a repository whose backups are whole.
func TestFailureLeavesWholeBackups(t *testing.T) {
	for _, h := range harmed {
		t.Run(h.name, func(t *testing.T) {
			mem := vfs.NewMem()
			s, _, want := repositoryAt(t, mem)
			defer s.Close()
			var err error
			want[3], err = digestOf(s)
			must.Do(t, err)
			failures := 0
			for n := 0; ; n += seedtest.Stride(5) {
				disk := faultfs.New(mem.Clone())
				cause := []error{faultfs.ErrIO, faultfs.ErrSpace}[n%2]
				fails := disk.Fail(faultfs.Rule{Skip: n, Err: cause, When: faultfs.When(n % 3),
					Match: func(c faultfs.Call) bool {
						return strings.HasPrefix(c.Name, "/repo")
					}})
				err := h.do(backup.Open(backup.Dir("/repo", disk)), s)
				_, failed := fails.First()
				disk.Heal()
				if err != nil {
					failures++
				}
				if err != nil && !errors.Is(err, cause) {
					t.Fatalf("call %d: %v, want %v", n, err, cause)
				}
				must.Do(t, checkWhole(disk, s, want, h.min), "call", n)
				if !failed {
					break
				}
			}
			t.Logf("%d failures", failures)
			if failures == 0 {
				t.Error("nothing failed")
			}
		})
	}
}

// A repository of which any byte of any object is changed, or any object is cut off or missing,
// restores to the right rows or fails with ErrCorrupt, and then makes no directory.
func TestDamagedRepositoryIsRefused(t *testing.T) {
	r := seedtest.Rand(t)
	mem := vfs.NewMem()
	s, _, want := repositoryAt(t, mem)
	defer s.Close()
	list := objects(t, backup.Dir("/repo", mem))
	refused := 0
	try := func(what string, harm func(disk *vfs.Mem) error) {
		t.Helper()
		disk := mem.Clone()
		must.Do(t, harm(disk))
		repo := backup.Open(backup.Dir("/repo", disk))
		for n := uint64(1); n <= 2; n++ {
			got, err := restored(repo, n, disk)
			switch {
			case err == nil && maps.Equal(got, want[n]):
			case errors.Is(err, backup.ErrCorrupt), errors.Is(err, backup.ErrUnsupported),
				errors.Is(err, backup.ErrNotRepository), errors.Is(err, backup.ErrNotFound):
				refused++
			default:
				t.Errorf("%s: backup %d: %v", what, n, err)
			}
		}
		must.Fail(t, must.Err(disk.Stat("/restored")), fs.ErrNotExist, what, "a directory is left")
	}
	names := slices.Sorted(maps.Keys(list))
	for _, name := range names {
		if strings.HasPrefix(name, "objects/") && r.IntN(seedtest.Stride(8)) > 0 {
			continue
		}
		size := list[name]
		path := "/repo/" + name
		try(name+" missing", func(disk *vfs.Mem) error { return disk.Remove(path) })
		change := func(what string, do func(f vfs.File) error) {
			try(name+" "+what, func(disk *vfs.Mem) error {
				f, err := disk.Open(path, true)
				if err != nil {
					return err
				}
				return errors.Join(do(f), f.Close())
			})
		}
		change("cut off", func(f vfs.File) error { return f.Truncate(size / 2) })
		change("longer", func(f vfs.File) error { _, err := f.WriteAt([]byte{1}, size); return err })
		for range min(size, seedtest.Rounds(int64(30), 6)) {
			off := r.Int64N(size)
			change(fmt.Sprintf("byte %d", off), func(f vfs.File) error {
				var b [1]byte
				f.ReadAt(b[:], off)
				_, err := f.WriteAt([]byte{b[0] ^ byte(1+r.IntN(255))}, off)
				return err
			})
		}
	}
	// The manifest of another backup has right checksums.
	disk := mem.Clone()
	must.Do(t, disk.Rename("/repo/manifests/0000000001", "/repo/manifests/0000000002"))
	must.Fail(t, must.Err(restored(backup.Open(backup.Dir("/repo", disk)), 2, disk)), backup.ErrCorrupt,
		"with the manifest of another backup")
	t.Logf("refused %d times", refused)
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// A block that is damaged in the store ends the backup, and is not in the repository.
func TestDamagedBlockIsNotBackedUp(t *testing.T) {
	mem := vfs.NewMem()
	s, table := smallStore(t, mem, "/store")
	defer s.Close()
	put(t, s, table, 0, 3000)
	names := must.Get(mem.List("/store/data"))(t)
	f := must.Get(mem.Open("/store/data/"+names[0], true))(t)
	b := make([]byte, 64)
	f.ReadAt(b, 4096)
	f.WriteAt(bytes.Repeat([]byte{0xee}, 64), 4096)
	must.Do(t, f.Close())
	repo := backup.Open(backup.Dir("/repo", mem))
	must.Fail(t, must.Err(repo.Backup(ctx, s)), backup.ErrCorrupt)
	if list, err := repo.Backups(ctx); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}
