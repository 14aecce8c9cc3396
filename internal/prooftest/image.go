package prooftest

import (
	"io"
	"math/rand/v2"
	"path/filepath"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/vfs"
)

// walk calls visit for dir and all that is below it, a directory before its content, names in order.
func walk(fsys vfs.FS, dir string, visit func(name string, isDir bool) error) error {
	info, err := fsys.Stat(dir)
	if err != nil {
		return err
	}
	if err := visit(dir, info.IsDir()); err != nil || !info.IsDir() {
		return err
	}
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := walk(fsys, filepath.Join(dir, n), visit); err != nil {
			return err
		}
	}
	return nil
}

// ReadFile reads a whole file.
func ReadFile(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, 0, size))
}

// Files lists the files below dir.
func Files(fsys vfs.FS, dir string) (names []string, err error) {
	err = walk(fsys, dir, func(name string, isDir bool) error {
		if !isDir {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// Fingerprint is a hash over all names below dir and the content of all files.
func Fingerprint(fsys vfs.FS, dir string) (sum [16]byte, err error) {
	h := xxh3.New128()
	err = walk(fsys, dir, func(name string, isDir bool) error {
		h.WriteString(name + "\x00")
		if isDir {
			return nil
		}
		b, err := ReadFile(fsys, name)
		content := xxh3.Hash128(b).Bytes()
		h.Write(content[:])
		return err
	})
	return h.Sum128().Bytes(), err
}

// tornPage is the unit in which a torn write reaches the disk.
const tornPage = 512

// Torn is what a power cut leaves at its most random: of each directory either the synced names or those that were there, of each
// file the synced content, the written content, or pages of both with a length between; nothing that was synced is missing.
func Torn(m *vfs.Mem, dir string, r *rand.Rand) (*vfs.Mem, error) {
	out := m.Clone()
	named := out.Clone()
	err := walk(named, dir, func(name string, isDir bool) error {
		if isDir {
			return named.SyncDir(name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	synced := named.Crash() // today's names with synced content
	err = walk(out, dir, func(name string, isDir bool) error {
		switch {
		case isDir && r.IntN(2) == 0:
			return out.SyncDir(name)
		case isDir:
			return nil
		}
		return tear(out, synced, name, r)
	})
	if err != nil {
		return nil, err
	}
	return out.Crash(), nil
}

// tear leaves a file of out with durable content somewhere between synced and written.
func tear(out, synced *vfs.Mem, name string, r *rand.Rand) error {
	now, err := ReadFile(out, name)
	if err != nil {
		return err
	}
	old, err := ReadFile(synced, name)
	if err != nil {
		return err
	}
	choice := r.IntN(4)
	if choice == 0 || string(old) == string(now) {
		return nil
	}
	f, err := out.Open(name, true)
	if err != nil {
		return err
	}
	defer f.Close()
	if choice == 1 {
		return f.Sync()
	}
	mixed := mix(old, now, r)
	if err := f.Truncate(int64(len(mixed))); err != nil {
		return err
	}
	if _, err := f.WriteAt(mixed, 0); err != nil {
		return err
	}
	return f.Sync()
}

// mix takes each page from old or from now. What neither has reads as zeros.
func mix(old, now []byte, r *rand.Rand) []byte {
	shorter, longer := min(len(old), len(now)), max(len(old), len(now))
	size := shorter
	switch r.IntN(3) {
	case 0:
		size = len(now)
	case 1:
		size += r.IntN(longer - shorter + 1)
	}
	mixed := make([]byte, size)
	keep := r.IntN(5) // of four, about: how much of the new content made it
	for at := 0; at < size; at += tornPage {
		from := old
		if r.IntN(4) < keep {
			from = now
		}
		if at < len(from) {
			copy(mixed[at:min(at+tornPage, size)], from[at:])
		}
	}
	return mixed
}
