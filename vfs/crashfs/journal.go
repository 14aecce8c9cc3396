package crashfs

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/vfs"
)

// node is a file or a directory, whatever its name.
type node struct {
	n   int
	dir bool
}

var root = node{dir: true}

// Kinds of op.
type kind string

const (
	write    kind = "write"
	copied   kind = "copy" // a write into a window
	truncate kind = "truncate"
	punch    kind = "punch"
	link     kind = "name"   // a directory gets a name
	unlink   kind = "unname" // and loses one
	move     kind = "rename" // within a directory
)

// op is a change that can be lost.
type op struct {
	seq    int
	kind   kind
	node   node   // the file; of names, the directory
	off    int64  // write, copied, punch; the new length of truncate
	length int64  // punch
	data   []byte // write, copied

	name, to string // of names
	child    node   // what the name leads to
}

func (o *op) names() bool { return o.kind == link || o.kind == unlink || o.kind == move }

// writes reports whether the operation writes bytes.
func (o *op) writes() bool { return o.kind == write || o.kind == copied }

func (o *op) String() string {
	switch o.kind {
	case write, copied:
		return fmt.Sprintf("%s %d of %d bytes at %d", o.kind, o.seq, len(o.data), o.off)
	case truncate:
		return fmt.Sprintf("truncate %d to %d", o.seq, o.off)
	case punch:
		return fmt.Sprintf("punch %d of %d bytes at %d", o.seq, o.length, o.off)
	case move:
		return fmt.Sprintf("rename %d of %s to %s", o.seq, o.name, o.to)
	}
	return fmt.Sprintf("%s %d, %s", o.kind, o.seq, o.name)
}

// rename applies an operation on names.
func (o *op) rename(names map[string]node) {
	if o.kind != link && names[o.name] == o.child {
		delete(names, o.name)
	}
	switch o.kind {
	case link:
		names[o.name] = o.child
	case move:
		names[o.to] = o.child
	}
}

// apply applies an operation on content.
func (o *op) apply(f vfs.File) (err error) {
	switch o.kind {
	case write, copied:
		_, err = f.WriteAt(o.data, o.off)
	case truncate:
		err = f.Truncate(o.off)
	case punch:
		err = f.PunchHole(o.off, o.length)
	}
	return err
}

// picture is the durable state at a time, and the operations that are not durable.
type picture struct {
	store   *vfs.Mem                 // each file under the name that path gives, with its durable content
	durable map[node]map[string]node // names of directories; none if there is no entry. The inner maps never change
	pending []*op                    // ascending
	seq     int                      // of the last op
}

// journal is the record of an FS: its operations, and the files that they have made. Guarded by
// FS.turn.
type journal struct {
	picture
	names map[node]map[string]node // current names
	files map[node]bool            // in store
	made  int                      // number of nodes

	forgetFlushes int
	past          []*picture // before the last flushes
	recent        []*op      // all since past[0]
}

// shelf is the directory of all files in picture.store. No real file has such a name.
const shelf = "/\x00crashfs"

func (n node) path() string { return fmt.Sprintf("%s/%d", shelf, n.n) }

// check panics if an operation fails that cannot fail in memory.
func check(err error) {
	if err != nil {
		panic("crashfs: " + err.Error())
	}
}

func newJournal(base *vfs.Mem) *journal {
	j := &journal{files: map[node]bool{}, names: map[node]map[string]node{root: {}}}
	j.store, j.durable = base.Clone(), map[node]map[string]node{}
	check(j.store.Mkdir(shelf))
	j.shelve(base, root, "/")
	for n, names := range j.names {
		j.durable[n] = maps.Clone(names)
	}
	return j
}

// shelve moves the files below dir to the shelf.
func (j *journal) shelve(base *vfs.Mem, dir node, name string) {
	entries, err := base.List(name)
	check(err)
	for _, e := range entries {
		at := filepath.Join(name, e)
		info, err := base.Stat(at)
		check(err)
		n := j.node(info.IsDir())
		j.names[dir][e] = n
		if info.IsDir() {
			j.names[n] = map[string]node{}
			j.shelve(base, n, at)
			check(j.store.Remove(at))
			continue
		}
		check(j.store.Rename(at, n.path()))
		j.files[n] = true
	}
}

func (j *journal) node(dir bool) node {
	j.made++
	return node{j.made, dir}
}

// find returns the node called name, which exists.
func (j *journal) find(name string) node {
	n := root
	for _, e := range elements(name) {
		n = j.names[n][e]
	}
	return n
}

// parent returns the directory that contains name, and the last element of name.
func (j *journal) parent(name string) (dir node, base string) {
	path := elements(name)
	return j.find(strings.Join(path[:len(path)-1], "/")), path[len(path)-1]
}

func elements(name string) []string {
	name = filepath.ToSlash(filepath.Clean(name)[len(filepath.VolumeName(name)):])
	if name == "." {
		return nil
	}
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}

// add records an operation.
func (j *journal) add(o *op) {
	if !o.names() && !j.files[o.node] {
		return // it has no name left and will not get one
	}
	j.seq++
	o.seq = j.seq
	j.pending = append(j.pending, o) // pictures share the array: the elements that they see do not change
	if len(j.past) > 0 {
		j.recent = append(j.recent, o)
	}
	if o.names() {
		o.rename(j.names[o.node])
	}
}

func (j *journal) create(name string) node {
	n := j.node(false)
	f, err := j.store.Create(n.path())
	check(err)
	check(f.Close())
	j.files[n] = true
	dir, base := j.parent(name)
	j.add(&op{kind: link, node: dir, name: base, child: n})
	return n
}

func (j *journal) mkdir(name string) {
	n := j.node(true)
	j.names[n], j.durable[n] = map[string]node{}, nil
	dir, base := j.parent(name)
	j.add(&op{kind: link, node: dir, name: base, child: n})
}

func (j *journal) remove(name string) {
	dir, base := j.parent(name)
	j.add(&op{kind: unlink, node: dir, name: base, child: j.names[dir][base]})
}

func (j *journal) rename(oldName, newName string) {
	from, base := j.parent(oldName)
	to, newBase := j.parent(newName)
	n := j.names[from][base]
	switch {
	case from != to:
		j.add(&op{kind: link, node: to, name: newBase, child: n})
		j.add(&op{kind: unlink, node: from, name: base, child: n})
	case base != newBase:
		j.add(&op{kind: move, node: to, name: base, to: newBase, child: n})
	}
}

// replace sets the durable content of a file.
func (j *journal) replace(n node, content []byte) {
	if !j.files[n] {
		return
	}
	f, err := j.store.Open(n.path(), true)
	check(err)
	check(f.Truncate(0))
	_, err = f.WriteAt(content, 0)
	check(err)
	check(f.Close())
}

// flush makes the changes to a file, or to the names of a directory, durable.
func (j *journal) flush(n node) {
	of := func(o *op) bool { return o.node == n }
	if !slices.ContainsFunc(j.pending, of) {
		return
	}
	j.remember()
	if n.dir {
		j.durable[n] = maps.Clone(j.durable[n])
		if j.durable[n] == nil {
			j.durable[n] = map[string]node{}
		}
		for _, o := range j.pending {
			if o.node == n {
				o.rename(j.durable[n])
			}
		}
	} else {
		f, err := j.store.Open(n.path(), true)
		check(err)
		for _, o := range j.pending {
			if o.node == n {
				check(o.apply(f))
			}
		}
		check(f.Close())
	}
	j.pending = slices.DeleteFunc(slices.Clone(j.pending), of)
	if n.dir {
		j.sweep()
	}
}

// remember saves the picture before a flush.
func (j *journal) remember() {
	if j.forgetFlushes == 0 {
		return
	}
	j.past = append(j.past, j.copy())
	j.past = slices.Clone(j.past[max(0, len(j.past)-j.forgetFlushes):])
	j.recent = slices.DeleteFunc(slices.Clone(j.recent), func(o *op) bool { return o.seq <= j.past[0].seq })
}

func (p *picture) copy() *picture {
	return &picture{store: p.store.Clone(), durable: maps.Clone(p.durable), pending: p.pending, seq: p.seq}
}

// sweep removes files that no name refers to in any state.
func (j *journal) sweep() {
	reached := map[node]bool{}
	var walk func(n node)
	walk = func(n node) {
		if reached[n] {
			return
		}
		reached[n] = true
		for _, names := range []map[string]node{j.names[n], j.durable[n]} {
			for _, child := range names {
				walk(child)
			}
		}
	}
	walk(root)
	for _, o := range j.pending {
		if o.names() {
			walk(o.child)
		}
	}
	for n := range j.files {
		if !reached[n] {
			check(j.store.Remove(n.path()))
			delete(j.files, n)
		}
	}
	j.pending = slices.DeleteFunc(slices.Clone(j.pending), func(o *op) bool { return !reached[o.node] })
	for n := range j.names {
		if !reached[n] {
			delete(j.names, n)
			delete(j.durable, n)
		}
	}
}
