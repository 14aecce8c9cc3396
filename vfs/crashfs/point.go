package crashfs

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/vfs"
)

// Point is a time at which a crash may happen. It does not change with the file system. Not for
// concurrent use.
type Point struct {
	now    *picture
	past   []*picture // before the last flushes, the oldest first
	recent []*op      // all since past[0]

	names map[node]map[string]node
	files map[node]bool
	made  int
}

func (j *journal) point() *Point {
	p := &Point{now: j.copy(), past: slices.Clone(j.past), recent: j.recent, files: maps.Clone(j.files),
		made: j.made, names: map[node]map[string]node{}}
	for n, names := range j.names {
		p.names[n] = maps.Clone(names)
	}
	return p
}

// Kill returns the state after a kill of the process: everything that was written. In the copy all
// of it is durable; Resume keeps the distinction.
func (p *Point) Kill() *vfs.Mem { return p.now.build(p.now.pending, keepAll) }

// Cut returns the state after a power cut if nothing unsynced survives.
func (p *Point) Cut() *vfs.Mem { return p.now.build(nil, keepAll) }

// Random returns a state after a power cut in which a random part of the unsynced operations is
// lost.
func (p *Point) Random(r *rand.Rand) *vfs.Mem {
	return p.now.build(p.now.pending, someOf(p.now.pending, r.Uint64()))
}

// Resume returns the file system as the next process finds it after a kill: everything is present,
// and bytes and names that were not durable still are not.
func (p *Point) Resume() *FS {
	j := &journal{picture: *p.now.copy(), files: maps.Clone(p.files), made: p.made, names: map[node]map[string]node{}}
	j.pending = slices.Clone(j.pending)
	for n, names := range p.names {
		j.names[n] = maps.Clone(names)
	}
	return &FS{live: p.Kill(), journal: j}
}

// part describes how much of an operation is kept.
type part struct {
	how  how
	n    int                   // prefix: bytes
	seed uint64                // sectors
	keep func(page int64) bool // pages
}

type how int

const (
	all     how = iota
	none        // lost
	length      // of a write: the file has its length, but the bytes are zeros
	prefix      // of a write: its first bytes
	sectors     // of a write: any of its sectors
	pages       // of a copy: what is in some pages
)

// sector is the unit that a disk writes entirely or not at all; page is the unit in which a system
// writes bytes that were copied into a window, as the page is at that time.
const (
	sector = 512
	page   = 4096
)

func keepAll(*op) part { return part{} }

func keepNone(*op) part { return part{how: none} }

// someOf keeps random operations and random parts of writes. For one half of the seeds it keeps
// each page of a window as it was at a random time. The seed determines each decision.
func someOf(ops []*op, seed uint64) func(*op) part {
	first := rand.New(rand.NewPCG(seed, 0))
	kept := first.IntN(5) // about this many of four
	pages := keepAll
	if byPage := first.IntN(2) == 0; byPage {
		pages = eachPage(ops, func(_ pageOf, n int) int { return first.IntN(n + 1) })
	}
	return func(o *op) part {
		r := rand.New(rand.NewPCG(seed, uint64(o.seq)))
		if c := pages(o); c.how != all {
			return c
		}
		switch {
		case r.IntN(4) < kept:
			return part{}
		case o.writes() && r.IntN(3) == 0:
			return part{how: sectors, seed: r.Uint64()}
		case o.writes() && r.IntN(4) == 0:
			return part{how: length}
		}
		return part{how: none}
	}
}

// pageOf is a page of a file.
type pageOf struct {
	node node
	page int64
}

// copies returns the numbers of the operations that copied bytes into each page, ascending, and the
// pages in the order of their first copy.
func copies(ops []*op) (into map[pageOf][]int, order []pageOf) {
	into = map[pageOf][]int{}
	for _, o := range ops {
		if o.kind != copied {
			continue
		}
		_ = o.pieces(page, func(at, _ int64) error {
			p := pageOf{o.node, at / page}
			if len(into[p]) == 0 {
				order = append(order, p)
			}
			into[p] = append(into[p], o.seq)
			return nil
		})
	}
	return into, order
}

// eachPage keeps of each page that bytes were copied into the first choose(page, n) of its n
// copies, and all other operations.
func eachPage(ops []*op, choose func(p pageOf, n int) int) func(*op) part {
	into, order := copies(ops)
	last := map[pageOf]int{} // the number of the last copy that is kept
	for _, p := range order {
		if n := choose(p, len(into[p])); n > 0 {
			last[p] = into[p][n-1]
		}
	}
	return func(o *op) part {
		if o.kind != copied {
			return part{}
		}
		return part{how: pages, keep: func(page int64) bool { return o.seq <= last[pageOf{o.node, page}] }}
	}
}

// Pages returns a state after a power cut in which each page that bytes were copied into, since the
// last sync of its file, has the first choose(page, n) of its n copies. Everything else is present.
func (p *Point) Pages(choose func(page int64, n int) int) *vfs.Mem {
	ops := p.now.pending
	return p.now.build(ops, eachPage(ops, func(p pageOf, n int) int { return choose(p.page, n) }))
}

// pieces calls fn with the ranges into which multiples of size divide a write, up to the first
// error.
func (o *op) pieces(size int64, fn func(at, next int64) error) error {
	end := o.off + int64(len(o.data))
	for at := o.off; at < end; {
		next := min(end, (at/size+1)*size)
		if err := fn(at, next); err != nil {
			return err
		}
		at = next
	}
	return nil
}

// put applies part of an operation to content.
func (o *op) put(f vfs.File, c part) error {
	switch c.how {
	case none:
		return nil
	case all:
		return o.apply(f)
	}
	end := o.off + int64(len(o.data))
	write := func(at, next int64) error {
		_, err := f.WriteAt(o.data[at-o.off:next-o.off], at)
		return err
	}
	switch c.how {
	case prefix:
		return write(o.off, o.off+int64(c.n))
	case pages:
		return o.pieces(page, func(at, next int64) error {
			if !c.keep(at / page) {
				return nil
			}
			return write(at, next)
		})
	}
	r := rand.New(rand.NewPCG(c.seed, 1))
	if c.how == length || r.IntN(2) == 0 {
		size, err := f.Size()
		if err == nil && size < end {
			err = f.Truncate(end)
		}
		if err != nil {
			return err
		}
	}
	if c.how == length {
		return nil
	}
	return o.pieces(sector, func(at, next int64) error {
		if r.IntN(2) == 0 {
			return nil
		}
		return write(at, next)
	})
}

// build returns a file system with the durable content of the picture and the chosen parts of ops.
// All of it is synced.
func (p *picture) build(ops []*op, choose func(*op) part) *vfs.Mem {
	b := &builder{out: p.store.Clone(), names: maps.Clone(p.durable), content: map[node][]*op{}, choose: choose,
		placed: map[node]string{}}
	cloned := map[node]bool{}
	for _, o := range ops {
		switch {
		case !o.names():
			b.content[o.node] = append(b.content[o.node], o)
		case choose(o).how == all:
			if !cloned[o.node] {
				b.names[o.node], cloned[o.node] = maps.Clone(b.names[o.node]), true
				if b.names[o.node] == nil {
					b.names[o.node] = map[string]node{}
				}
			}
			o.rename(b.names[o.node])
		}
	}
	b.place(root, "")
	left, err := b.out.List(shelf)
	check(err)
	for _, name := range left {
		check(b.out.Remove(shelf + "/" + name))
	}
	check(b.out.Remove(shelf))
	check(b.out.SyncDir("/"))
	return b.out
}

type builder struct {
	out     *vfs.Mem
	names   map[node]map[string]node
	content map[node][]*op
	choose  func(*op) part
	placed  map[node]string // path of each placed node
}

// place creates the files below a directory.
func (b *builder) place(dir node, at string) {
	for _, name := range slices.Sorted(maps.Keys(b.names[dir])) { // choose may use random numbers
		n, to := b.names[dir][name], at+"/"+name
		switch {
		case !n.dir:
			b.file(n, to)
		case b.placed[n] == "": // otherwise the other half of its renaming is lost
			b.placed[n] = to
			check(b.out.Mkdir(to))
			b.place(n, to)
			check(b.out.SyncDir(to))
		}
	}
}

func (b *builder) file(n node, to string) {
	if from := b.placed[n]; from != "" { // likewise
		check(copyFile(b.out, from, to))
		return
	}
	b.placed[n] = to
	f, err := b.out.Open(n.path(), true)
	if err != nil { // it was created after the picture
		f, err = b.out.Create(n.path())
		check(err)
	}
	for _, o := range b.content[n] {
		check(o.put(f, b.choose(o)))
	}
	check(f.Sync())
	check(f.Close())
	check(b.out.Rename(n.path(), to))
}

func copyFile(m *vfs.Mem, from, to string) error {
	in, err := m.Open(from, false)
	if err != nil {
		return err
	}
	size, err := in.Size()
	check(err)
	content, err := io.ReadAll(io.NewSectionReader(in, 0, size))
	check(err)
	out, err := m.Create(to)
	check(err)
	_, err = out.WriteAt(content, 0)
	check(err)
	check(out.Sync())
	check(out.Close())
	return in.Close()
}

// hash returns a hash of a file system's names and contents.
func hash(m *vfs.Mem) [16]byte {
	h := xxh3.New128()
	buf := make([]byte, 1<<16)
	var walk func(dir string)
	walk = func(dir string) {
		names, err := m.List(dir)
		check(err)
		for _, name := range names {
			at := dir + "/" + name
			info, err := m.Stat(at)
			check(err)
			fmt.Fprintf(h, "%s\x00%d\x00", at, info.Size())
			if info.IsDir() {
				walk(at)
				continue
			}
			f, err := m.Open(at, false)
			check(err)
			_, err = io.CopyBuffer(onlyWriter{h}, io.NewSectionReader(f, 0, info.Size()), buf)
			check(err)
			check(f.Close())
		}
	}
	walk("")
	return h.Sum128().Bytes()
}

// onlyWriter hides the writer's other methods, so that io.CopyBuffer uses the buffer.
type onlyWriter struct{ io.Writer }
