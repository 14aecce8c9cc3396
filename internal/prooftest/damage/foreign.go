package damage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// Foreign is a small store in which one file at a time is removed, truncated, extended, or replaced
// by another or an older file.
type Foreign struct {
	Settings script.Settings
	images   map[bool]*vfs.Mem // images[true] is the disk after a kill, images[false] after Close
	model    *model.Model
	old      *vfs.Mem // the same store, closed at an earlier time
	oldModel *model.Model
	late     *vfs.Mem // the same store, closed before the last few batches, which are only in the log
	other    *vfs.Mem // a different store
	rng      *rand.Rand
}

// Harm is a change to one file. Each kind is applied to each file that it fits.
type Harm struct {
	Killed bool   // use the store as a kill leaves it
	File   string // full path
	Kind   string
}

func (h Harm) String() string {
	state := "closed"
	if h.Killed {
		state = "killed"
	}
	return fmt.Sprintf("%s store, %s: %s", state, h.File, h.Kind)
}

// ForeignCounts are statistics of harms and their outcomes.
type ForeignCounts struct {
	Harms    int64
	Opens    int64
	Refused  int64 // opens that failed
	Errors   int64 // opened stores with a failing read
	Answered int64 // opened stores with correct reads only
	Shorter  int64 // of these, killed stores that lost the last batches with the end of the log
}

// Add adds o to c.
func (c *ForeignCounts) Add(o ForeignCounts) {
	c.Harms += o.Harms
	c.Opens += o.Opens
	c.Refused += o.Refused
	c.Errors += o.Errors
	c.Answered += o.Answered
	c.Shorter += o.Shorter
}

// NewForeign creates the stores of a seed.
func NewForeign(seed uint64) (*Foreign, error) {
	o := history.SmallSettings(seed)
	o.Hybrid, o.History, o.NoCrashes, o.Background, o.Batch = false, 0, true, false, 0
	x := &Foreign{Settings: o, images: map[bool]*vfs.Mem{}, rng: values.NewRand(seed ^ 0xf04e)}
	r, g := x.history(o)
	r.Do(script.Step{Kind: script.Reopen}) // for an anchor, a log and a metadata store after a Close
	x.steps(r, g, 20)
	r.Do(script.Step{Kind: script.Reopen})
	x.old, x.oldModel = r.Written(), r.Model.Clone()
	x.steps(r, g, 20)
	r.Do(script.Step{Kind: script.Reopen})
	x.late = r.Written()
	x.batches(r, g)
	x.images[true], x.model = r.Written(), r.Model.Clone()
	r.Close()
	x.images[false] = r.Written()
	if r.Err != nil {
		return nil, r.Err
	}
	o.Seed++
	r, _ = x.history(o)
	r.Close()
	x.other = r.Written()
	return x, r.Err
}

// history creates a store with data in each kind of file.
func (x *Foreign) history(o script.Settings) (*history.Runner, *history.Generator) {
	r, g := history.NewRunner(o), history.NewGenerator(o)
	g.Weight = slices.DeleteFunc(history.WriteHeavy(), func(w history.Weighted) bool {
		return w.Kind == script.Drop || w.Kind == script.Kill || w.Kind == script.Verify
	})
	x.steps(r, g, 20)
	return r, g
}

// steps runs n steps, and then commits batches that are only in the log.
func (x *Foreign) steps(r *history.Runner, g *history.Generator, n int) {
	for range n {
		r.Do(g.Next(r))
	}
	for _, name := range r.Model.Names() {
		r.Do(script.Step{Kind: script.Flush, Table: name})
	}
	x.batches(r, g)
}

// batches commits three batches that change rows.
func (x *Foreign) batches(r *history.Runner, g *history.Generator) {
	for n := len(r.Model.Commits) + 3; len(r.Model.Commits) < n && r.Err == nil; {
		r.Do(g.Write(r, r.Model.Names()))
	}
}

// fileKind classifies a file by its directory and name pattern. Only files of the same kind are
// swapped.
func fileKind(name string) string {
	dir, base := filepath.Split(name)
	switch ext := filepath.Ext(base); {
	case strings.HasPrefix(base, "MANIFEST"), strings.HasPrefix(base, "OPTIONS"), strings.HasPrefix(base, "marker"):
		base, _, _ = strings.Cut(base, "-")
		return dir + strings.TrimRight(base, "0123456789.")
	case ext != "":
		return dir + ext
	}
	return name
}

// harm is a kind of harm. do applies it to an image and returns false if it does not fit the file
// or would change nothing.
type harm struct {
	kind string
	do   func(x *Foreign, image *vfs.Mem, h Harm) (bool, error)
}

// harms are the kinds for files.
var harms = []harm{
	{"missing", func(_ *Foreign, image *vfs.Mem, h Harm) (bool, error) { return true, image.Remove(h.File) }},
	{"empty", cutTo(func(int64) int64 { return 0 })},
	{"truncated in its header", cutTo(func(int64) int64 { return 10 })},
	{"truncated in the middle", cutTo(func(size int64) int64 { return size / 2 })},
	{"truncated near its end", cutTo(func(size int64) int64 { return size - min(size/4, 200) })},
	{"truncated by a byte", cutTo(func(size int64) int64 { return size - 1 })},
	{"swapped with another file", swap},
	{"replaced by a file of another store", func(x *Foreign, image *vfs.Mem, h Harm) (bool, error) {
		return replace(image, h.File, x.other, true)
	}},
	{"older", func(x *Foreign, image *vfs.Mem, h Harm) (bool, error) { return replace(image, h.File, x.old, false) }},
	{"slightly older", func(x *Foreign, image *vfs.Mem, h Harm) (bool, error) {
		return replace(image, h.File, x.late, false)
	}},
	{"extended by zeros", func(x *Foreign, image *vfs.Mem, h Harm) (bool, error) {
		return true, lengthen(image, h.File, make([]byte, 1+x.rng.IntN(9000)))
	}},
	{"extended by random bytes", func(x *Foreign, image *vfs.Mem, h Harm) (bool, error) {
		b := make([]byte, 1+x.rng.IntN(9000))
		for i := range b {
			b[i] = byte(x.rng.Uint32())
		}
		return true, lengthen(image, h.File, b)
	}},
	{forbidden, func(*Foreign, *vfs.Mem, Harm) (bool, error) { return true, nil }},
	{"replaced by a directory", func(_ *Foreign, image *vfs.Mem, h Harm) (bool, error) {
		return true, errors.Join(image.Remove(h.File), image.Mkdir(h.File))
	}},
}

// forbidden is the kind for which opening the file fails with EACCES.
const forbidden = "forbidden"

// dirHarms are the kinds for directories.
var dirHarms = []harm{
	{"removed with its contents", func(_ *Foreign, image *vfs.Mem, h Harm) (bool, error) {
		return true, removeAll(image, h.File)
	}},
	{"replaced by a file", func(_ *Foreign, image *vfs.Mem, h Harm) (bool, error) {
		if err := removeAll(image, h.File); err != nil {
			return false, err
		}
		f, err := image.Create(h.File)
		if err == nil {
			err = f.Close()
		}
		return true, err
	}},
}

func removeAll(image *vfs.Mem, dir string) error {
	names, err := files.Files(image, dir)
	for _, name := range names {
		err = errors.Join(err, image.Remove(name))
	}
	return errors.Join(err, image.Remove(dir))
}

func cutTo(size func(int64) int64) func(*Foreign, *vfs.Mem, Harm) (bool, error) {
	return func(_ *Foreign, image *vfs.Mem, h Harm) (bool, error) {
		info, err := image.Stat(h.File)
		if err != nil {
			return false, err
		}
		to := size(info.Size())
		if to < 0 || to >= info.Size() {
			return false, nil
		}
		f, err := image.Open(h.File, true)
		if err != nil {
			return false, err
		}
		defer f.Close()
		return true, f.Truncate(to)
	}
}

// swap exchanges a file with the next of its kind.
func swap(_ *Foreign, image *vfs.Mem, h Harm) (bool, error) {
	names, err := files.Files(image, history.Dir)
	if err != nil {
		return false, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return fileKind(n) != fileKind(h.File) })
	with := names[(slices.Index(names, h.File)+1)%len(names)]
	if with == h.File {
		return false, nil
	}
	a, err1 := files.ReadFile(image, h.File)
	b, err2 := files.ReadFile(image, with)
	if string(a) == string(b) {
		return false, nil
	}
	return true, errors.Join(err1, err2, writeFile(image, h.File, b), writeFile(image, with, a))
}

// replace replaces a file by the file of the same name in another image or, if any is set and that
// does not exist, by the first file of the same kind.
func replace(image *vfs.Mem, name string, from *vfs.Mem, any bool) (bool, error) {
	now, err := files.ReadFile(image, name)
	if err != nil {
		return false, err
	}
	b, err := files.ReadFile(from, name)
	if errors.Is(err, fs.ErrNotExist) && any {
		var names []string
		if names, err = files.Files(from, history.Dir); err != nil {
			return false, err
		}
		i := slices.IndexFunc(names, func(n string) bool { return fileKind(n) == fileKind(name) })
		if i < 0 {
			return false, nil
		}
		b, err = files.ReadFile(from, names[i])
	}
	if errors.Is(err, fs.ErrNotExist) || string(b) == string(now) {
		return false, nil
	}
	return true, errors.Join(err, writeFile(image, name, b))
}

func lengthen(image *vfs.Mem, name string, more []byte) error {
	b, err := files.ReadFile(image, name)
	if err != nil {
		return err
	}
	return writeFile(image, name, append(b, more...))
}

// writeFile replaces the contents of a file.
func writeFile(image *vfs.Mem, name string, b []byte) error {
	f, err := image.Open(name, true)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return err
}

// All returns all harms, including those that do not apply.
func (x *Foreign) All() (all []Harm, err error) {
	for _, killed := range []bool{false, true} {
		err := files.Walk(x.images[killed], history.Dir, func(name string, isDir bool) error {
			kinds := harms
			switch {
			case name == history.Dir:
				return nil
			case isDir:
				kinds = dirHarms
			}
			for _, k := range kinds {
				all = append(all, Harm{killed, name, k.kind})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Try damages a copy, opens it for reading and then for writing, and reads all of it. It checks
// that a failed Open reports the damage and its location and changes no file but LOCK, and that an
// opened store returns correct answers or reports the damage. After a kill, batches at the end of
// the log may be missing, which cannot be distinguished from a power cut.
func (x *Foreign) Try(h Harm) (c ForeignCounts, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	image := x.images[h.Killed].Clone()
	kinds := slices.Concat(harms, dirHarms)
	applies, err := kinds[slices.IndexFunc(kinds, func(k harm) bool { return k.kind == h.Kind })].do(x, image, h)
	if err != nil || !applies {
		return c, err
	}
	c.Harms = 1
	for _, readOnly := range []bool{true, false} {
		if err := x.open(&c, h, image, readOnly); err != nil {
			return c, fmt.Errorf("read-only %v: %w", readOnly, err)
		}
	}
	return c, nil
}

// Whole opens the older copy of the whole directory, which is a valid older store.
func (x *Foreign) Whole() error {
	s, err := oribi.Open(history.Dir, x.options(x.old.Clone()))
	if err != nil {
		return err
	}
	defer s.Close()
	return readStore(s, x.oldModel, sampleTimestamps(x.oldModel))
}

func (x *Foreign) options(image vfs.FS) *oribi.Options {
	return (&history.Runner{Script: &script.Script{Settings: x.Settings}, Wall: history.NewWall()}).Options(image)
}

func (x *Foreign) open(c *ForeignCounts, h Harm, image *vfs.Mem, readOnly bool) error {
	before, err := contents(image)
	if err != nil {
		return err
	}
	disk := faultfs.New(image)
	if h.Kind == forbidden {
		disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Open, faultfs.Lock}, Match: func(c faultfs.Call) bool {
			return c.Name == h.File
		},
			Times: faultfs.Forever, Err: syscall.EACCES})
	}
	opts := x.options(disk)
	opts.ReadOnly, opts.ErrorIfMissing = readOnly, true
	c.Opens++
	s, err := oribi.Open(history.Dir, opts)
	if err != nil {
		c.Refused++
		after, contentErr := contents(image)
		if contentErr == nil && !maps.Equal(before, after) {
			return fmt.Errorf("a failed open changed the directory: %w", err)
		}
		return errors.Join(contentErr, refused(err, h))
	}
	defer s.Close()
	model := x.model
	if h.Killed {
		if model, err = x.prefix(s); err != nil {
			return damaged(err)
		}
		if len(model.Commits) < len(x.model.Commits) {
			if filepath.Base(filepath.Dir(h.File)) != "wal" {
				return fmt.Errorf("%w: %d of %d batches", errWrong, len(model.Commits), len(x.model.Commits))
			}
			c.Shorter++
		}
	}
	if err := readStore(s, model, sampleTimestamps(model)); err != nil {
		c.Errors++
		return damaged(err)
	}
	c.Answered++
	return damaged(s.Verify(context.Background(), func(oribi.Finding) {}))
}

// prefix returns the model of the batches that are visible in a store.
func (x *Foreign) prefix(s *oribi.Store) (*model.Model, error) {
	m := x.model.Clone()
	v, err := model.SurveyStore(s, m.SurveyTimestamps(0))
	if err != nil {
		return nil, err
	}
	if m.Compare(v, len(m.Commits), "") == nil { // the last batches may have changed nothing
		return m, nil
	}
	n, err := m.Survivors(v, 0, nil, "")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errWrong, err)
	}
	m.Truncate(n)
	return m, nil
}

// sampleTimestamps returns three timestamps of a history; the last one is the newest state.
func sampleTimestamps(m *model.Model) []mvcc.Timestamp {
	n := len(m.Commits)
	if n == 0 {
		return []mvcc.Timestamp{mvcc.Max}
	}
	return []mvcc.Timestamp{m.Commits[n/3].TS, m.Commits[n*4/5].TS, mvcc.Max}
}

// refused checks the error of a failed Open: it must report damage and name its location.
func refused(err error, h Harm) error {
	if damaged(err) != nil && !(h.Kind == forbidden && errors.Is(err, fs.ErrPermission)) {
		return err
	}
	places := map[string][]string{"data": {"data", "container ", "block "}, "meta": {"metadata"}, "wal": {"wal", "log"},
		"store": {"LOCK", "INSTANCE", "ANCHOR", "metadata", "directory"}}
	dir := filepath.Base(filepath.Dir(h.File))
	if places[filepath.Base(h.File)] != nil {
		dir = filepath.Base(h.File)
	}
	for _, place := range places[dir] {
		if strings.Contains(err.Error(), place) {
			return nil
		}
	}
	return fmt.Errorf("the error does not name the damaged part: %w", err)
}

// contents returns the hashes of all files but LOCK, by name. Directories have the hash zero.
func contents(image *vfs.Mem) (map[string]xxh3.Uint128, error) {
	out := map[string]xxh3.Uint128{}
	err := files.Walk(image, history.Dir, func(name string, isDir bool) error {
		if isDir || name == filepath.Join(history.Dir, "LOCK") {
			out[name] = xxh3.Uint128{}
			return nil
		}
		b, err := files.ReadFile(image, name)
		out[name] = xxh3.Hash128(b)
		return err
	})
	delete(out, filepath.Join(history.Dir, "LOCK"))
	return out, err
}
