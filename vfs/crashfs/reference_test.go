package crashfs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

// event is one operation of the simplest possible record of a file system.
type event struct {
	kind kind // "" = flush
	of   int  // the file, or below 0 the directory
	off  int64
	n    int64
	data string

	name, to string
	child    int
}

// account lists all operations. It computes nothing in advance.
type account struct {
	events []event
	files  int
}

var directories = map[int]string{-1: "", -2: "/d"}

// waiting returns the indexes of the events that no flush of their file or directory follows.
func (a *account) waiting() (out []int) {
	for i, e := range a.events {
		if e.kind != "" && !slices.ContainsFunc(a.events[i:],
			func(later event) bool { return later.kind == "" && later.of == e.of }) {
			out = append(out, i)
		}
	}
	return out
}

// now returns the current names of a directory.
func (a *account) now(dir int) map[string]int {
	names, _ := a.replay(nil)
	return names[dir]
}

// replay applies all events except the lost ones: 'n' = absent, 'z' = only zeros of its length.
func (a *account) replay(lost map[int]byte) (names map[int]map[string]int, content map[int]string) {
	names, content = map[int]map[string]int{-1: {}, -2: {}}, map[int]string{}
	grow := func(of int, size int64) {
		content[of] += strings.Repeat("\x00", int(max(0, size-int64(len(content[of])))))
	}
	for i, e := range a.events {
		if lost[i] == 'n' {
			continue
		}
		c := content[e.of]
		switch e.kind {
		case write, copied:
			grow(e.of, e.off+int64(len(e.data)))
			if c = content[e.of]; lost[i] != 'z' {
				content[e.of] = c[:e.off] + e.data + c[e.off+int64(len(e.data)):]
			}
		case truncate:
			grow(e.of, e.off)
			content[e.of] = content[e.of][:e.off]
		case punch:
			if end := min(e.off+e.n, int64(len(c))); e.off < end {
				content[e.of] = c[:e.off] + strings.Repeat("\x00", int(end-e.off)) + c[end:]
			}
		case link:
			names[e.of][e.name] = e.child
		case unlink, move:
			if names[e.of][e.name] == e.child {
				delete(names[e.of], e.name)
			}
			if e.kind == move {
				names[e.of][e.to] = e.child
			}
		}
	}
	return names, content
}

// text formats a file system as one line.
func (a *account) text(lost map[int]byte) string {
	names, content := a.replay(lost)
	var out []string
	for dir, at := range directories {
		for name, of := range names[dir] {
			out = append(out, fmt.Sprintf("%s/%s=%q", at, name, content[of]))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func textOf(t *testing.T, m *vfs.Mem) string {
	t.Helper()
	var out []string
	for _, at := range directories {
		names := must.Get(m.List("/" + at))(t)
		for _, name := range names {
			name = at + "/" + name
			if info, err := m.Stat(name); err != nil || info.IsDir() {
				continue
			}
			out = append(out, fmt.Sprintf("%s=%q", name, read(t, m, name)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// possible returns the texts of all states in which any of the waiting events are lost.
func (a *account) possible() map[string]bool {
	out := map[string]bool{}
	waiting := a.waiting()
	var choose func(i int, lost map[int]byte)
	choose = func(i int, lost map[int]byte) {
		if i == len(waiting) {
			out[a.text(lost)] = true
			return
		}
		for _, how := range "knz" {
			if lost[waiting[i]] = byte(how); how != 'z' || a.events[waiting[i]].kind == write ||
				a.events[waiting[i]].kind == copied {
				choose(i+1, lost)
			}
		}
	}
	choose(0, map[int]byte{})
	return out
}

// promised returns the texts that the states must include.
func (a *account) promised() map[string]string {
	waiting := a.waiting()
	names := func(i int) bool { return a.events[i].of < 0 }
	keep := func(keep func(i int) bool) string {
		lost := map[int]byte{}
		for _, i := range waiting {
			if !keep(i) {
				lost[i] = 'n'
			}
		}
		return a.text(lost)
	}
	out := map[string]string{
		"none":    keep(func(int) bool { return false }),
		"all":     keep(func(int) bool { return true }),
		"names":   keep(names),
		"content": keep(func(i int) bool { return !names(i) }),
	}
	for _, w := range waiting {
		out[fmt.Sprint("all but ", w)] = keep(func(i int) bool { return i != w })
		out[fmt.Sprint("only ", w)] = keep(func(i int) bool { return i == w })
		if names(w) {
			out[fmt.Sprint("content and ", w)] = keep(func(i int) bool { return i == w || !names(i) })
			continue
		}
		out[fmt.Sprint("names and ", w)] = keep(func(i int) bool { return i == w || names(i) })
		if k := a.events[w].kind; k == write || k == copied {
			out[fmt.Sprint("zeros for ", w)] = a.text(map[int]byte{w: 'z'})
		}
	}
	return out
}

// world is a file system and its account.
type world struct {
	t    *testing.T
	r    *rand.Rand
	fsys *FS
	a    *account
	open map[int]vfs.File
}

func newWorld(t *testing.T, r *rand.Rand) *world {
	base := vfs.NewMem()
	must.Do(t, base.Mkdir("/d"))
	return &world{t: t, r: r, fsys: New(base), a: &account{}, open: map[int]vfs.File{}}
}

// step does one operation on a file, mostly an existing one.
func (w *world) step() {
	dir := -1 - w.r.IntN(2)
	name := string(rune('x' + w.r.IntN(3)))
	path := directories[dir] + "/" + name
	of, there := w.a.now(dir)[name]
	add := func(e event) { w.a.events = append(w.a.events, e) }
	var err error
	switch what := w.r.IntN(12); {
	case !there:
		w.a.files++
		add(event{kind: link, of: dir, name: name, child: w.a.files})
		w.open[w.a.files], err = w.fsys.Create(path)
	case what == 0:
		add(event{kind: unlink, of: dir, name: name, child: of})
		err = w.fsys.Remove(path)
	case what <= 2:
		to, newName := -1-w.r.IntN(2), string(rune('x'+w.r.IntN(3)))
		switch {
		case to != dir:
			add(event{kind: link, of: to, name: newName, child: of})
			add(event{kind: unlink, of: dir, name: name, child: of})
		case name != newName:
			add(event{kind: move, of: dir, name: name, to: newName, child: of})
		}
		err = w.fsys.Rename(path, directories[to]+"/"+newName)
	case what == 3:
		add(event{of: dir})
		err = w.fsys.SyncDir("/" + directories[dir])
	case what <= 5:
		add(event{of: of})
		err = w.open[of].Sync()
	case what == 6:
		e := event{kind: truncate, of: of, off: w.r.Int64N(1200)}
		add(e)
		err = w.open[of].Truncate(e.off)
	case what == 7:
		e := event{kind: punch, of: of, off: w.r.Int64N(1200), n: w.r.Int64N(300)}
		add(e)
		err = w.open[of].PunchHole(e.off, e.n)
	case what == 8:
		e := event{kind: copied, of: of, off: sector*w.r.Int64N(3) + w.r.Int64N(500),
			data: strings.Repeat(string(rune('A'+w.r.IntN(26))), 1+w.r.IntN(12))}
		end := e.off + int64(len(e.data))
		if _, content := w.a.replay(nil); int64(len(content[of])) < end {
			add(event{kind: truncate, of: of, off: end})
			if err = w.open[of].Truncate(end); err != nil {
				break
			}
		}
		add(e)
		var win vfs.Window
		if win, err = vfs.Map(w.open[of], e.off, int64(len(e.data))); err == nil {
			err = win.Copy([]byte(e.data), e.off)
		}
	default: // within a sector
		e := event{kind: write, of: of, off: sector*w.r.Int64N(3) + w.r.Int64N(500),
			data: strings.Repeat(string(rune('a'+w.r.IntN(26))), 1+w.r.IntN(12))}
		add(e)
		_, err = w.open[of].WriteAt([]byte(e.data), e.off)
	}
	must.Do(w.t, err)
}

// States is compared with a simple reference: a list of all events that is replayed from its start
// for each state.
func TestStatesMatchReplayedEvents(t *testing.T) {
	r := seedtest.Rand(t)
	states := 0
	for range seedtest.Rounds(20, 4) {
		w := newWorld(t, r)
		for range 40 {
			w.step()
			if len(w.a.waiting()) > 5 {
				dir := -1 - r.IntN(2)
				w.a.events = append(w.a.events, event{of: dir})
				must.Do(t, w.fsys.SyncDir("/"+directories[dir]))
				for of, f := range w.open {
					w.a.events = append(w.a.events, event{of: of})
					must.Do(t, f.Sync())
				}
			}
			if r.IntN(3) == 0 {
				states += w.compare(r.Uint64())
			}
			if r.IntN(10) == 0 {
				w.kill()
			}
		}
	}
	t.Logf("%d states", states)
}

func (w *world) compare(seed uint64) int {
	w.t.Helper()
	point := w.fsys.Point()
	possible, seen := w.a.possible(), map[string]bool{}
	for s := range point.States(seed, 0) {
		text := textOf(w.t, s.Image)
		must.Equal(w.t, possible[text], true, s.Name, text)
		must.Equal(w.t, seen[text], false, s.Name, text)
		seen[text] = true
	}
	for name, text := range w.a.promised() {
		must.Equal(w.t, seen[text], true, name, text)
	}
	for name, got := range map[string][2]string{"Cut": {textOf(w.t, point.Cut()), w.a.promised()["none"]},
		"Kill": {textOf(w.t, point.Kill()), w.a.text(nil)},
		"Read": {textOf(w.t, w.fsys.Read()), w.a.text(nil)}} {
		must.Equal(w.t, got[0], got[1], name)
	}
	return len(seen)
}

// kill continues like the next process.
func (w *world) kill() {
	w.fsys = w.fsys.Point().Resume()
	for of := range w.open {
		delete(w.open, of)
	}
	for dir, at := range directories {
		for name, of := range w.a.now(dir) {
			f := must.Get(w.fsys.Open(at+"/"+name, true))(w.t)
			w.open[of] = f
		}
	}
}
