package followers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/vfs"
)

// fullFS is a file system whose disk is full now and then.
type fullFS struct {
	vfs.FS
	full *atomic.Bool
}

func (f fullFS) FreeBytes(dir string) int64 {
	if f.full.Load() {
		return 0
	}
	return f.FS.FreeBytes(dir)
}

// Harm runs a random trace on a disk that is full now and then, cuts the power at random moments,
// and damages the store at its end. Followers must see states of the trace, or report the damage.
func Harm(seed uint64, steps int) (Counts, error) {
	r := rand.New(rand.NewPCG(seed, 4803))
	f := NewTrace()
	var full atomic.Bool
	var l *Follower
	var refused atomic.Int64
	f.May = func(err error) bool {
		if errors.Is(err, oribi.ErrNoSpace) {
			refused.Add(1)
			return true
		}
		return false
	}
	var end *vfs.Mem
	err := Run(f, Random(rand.New(rand.NewPCG(seed, 4804)), steps), oribi.Options{}, func(fsys vfs.FS) vfs.FS {
		return fullFS{fsys, &full}
	}, func(disk *vfs.Mem, w *Turns) error {
		end = disk
		if l == nil {
			l = NewFollower(f, disk)
		}
		if r.IntN(12) == 0 {
			full.Store(!full.Load() && r.IntN(2) == 0)
		}
		at := w.Taken()
		if err := l.Look(nil); err != nil {
			return fmt.Errorf("writer at operation %d: %w", at, err)
		}
		if r.IntN(15) == 0 {
			if err := l.cut(disk); err != nil {
				return fmt.Errorf("power cut at operation %d: %w", at, err)
			}
		}
		w.Advance(1 + r.IntN(12))
		l.Operations = int64(w.Taken())
		return nil
	})
	if l == nil {
		return Counts{}, err
	}
	l.Full = refused.Load()
	err = errors.Join(err, l.Close())
	for range 30 {
		if err == nil {
			err = l.damage(end, r)
		}
	}
	return l.Counts, err
}

// cut opens the store as a power cut now would leave it: as a follower, as a writer, and again.
func (l *Follower) cut(disk *vfs.Mem) error {
	l.Cuts++
	left := disk.Crash()
	synced := l.f.Synced()
	_, last := l.f.Moments()
	open := func(o oribi.Options) (*oribi.Store, string, error) {
		o.FS, o.Manual = left, true
		s, err := oribi.Open(storeDir, &o)
		if err != nil {
			return nil, "", err
		}
		got, err := Content(s)
		if err == nil && l.f.Find(got, synced, last) < 0 {
			err = fmt.Errorf("the store has\n%s\nwant one of the states %d to %d:\n%s", got, synced,
				last, l.f.States(synced, last))
		}
		return s, got, err
	}
	l.Opens++
	follower, _, err := open(oribi.Options{Follow: true})
	if err != nil {
		if errors.Is(err, oribi.ErrNotStore) && last == 0 {
			return nil
		}
		return fmt.Errorf("follower: %w", err)
	}
	defer follower.Close()
	writer, want, err := open(oribi.Options{})
	if err != nil {
		return fmt.Errorf("writer: %w", err)
	}
	defer writer.Close()
	l.Refreshes++
	if err := follower.Refresh(context.Background()); err != nil {
		return err
	}
	if got, err := Content(follower); err != nil || got != want {
		return fmt.Errorf("the follower has\n%s\nthe writer has\n%s: %w", got, want, errors.Join(err))
	}
	return nil
}

// damage opens a closed store of which a byte was changed.
func (l *Follower) damage(end *vfs.Mem, r *rand.Rand) error {
	disk := end.Clone()
	var names []string
	for _, dir := range []string{"", "wal", "meta", "data"} {
		list, err := disk.List(filepath.Join(storeDir, dir))
		if err != nil {
			return err
		}
		for _, name := range list {
			path := filepath.Join(storeDir, dir, name)
			if info, err := disk.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
				names = append(names, path)
			}
		}
	}
	name := names[r.IntN(len(names))]
	f, err := disk.Open(name, true)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	at, b := r.Int64N(size), make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		return err
	}
	b[0] ^= byte(1 + r.IntN(255))
	if _, err := f.WriteAt(b, at); err != nil {
		return err
	}
	l.Damaged++
	s, err := oribi.Open(storeDir, &oribi.Options{FS: disk, Follow: true})
	if err != nil {
		return nil // refused
	}
	defer s.Close()
	got, err := Content(s)
	if err != nil {
		return nil // found
	}
	_, last := l.f.Moments()
	first := last
	if strings.Contains(name, "wal") { // damage at the end of the log looks like an incomplete write
		first = 0
	}
	if l.f.Find(got, first, last) < 0 {
		return fmt.Errorf("with byte %d of %s changed the follower has\n%s\nwant\n%s", at,
			name, got, l.f.States(last, last))
	}
	return nil
}
