package blockmanager

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
	"github.com/zeebo/xxh3"
)

// Damage is a fault that OpenDamaged accepts: a file whose bytes differ from the bytes that were
// written.
type Damage struct {
	File    string // within the directory
	Problem string
	Lost    bool // the metadata is not the newest; otherwise nothing but, perhaps, blocks of the file is lost
}

// OpenDamaged is Open for a directory that may be damaged. It writes nothing, and Writable must not
// be called. It calls report for each damage: containers that are missing, too short, or have a bad
// header page, which costs nothing if the blocks can be read; a bad anchor; bad metadata, in whose
// place the journal is read.
//
// Errors: ErrCorrupt if neither can be read, and the errors of Open.
func OpenDamaged(o Options, report func(Damage)) (*Manager, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	o.ReadOnly, o.tolerance = true, &tolerance{report: report, doubtful: map[*container]bool{}}
	m := &Manager{o: o, poison: newPoison(), fresh: map[*container]struct{}{}}
	if err := m.readDamaged(); err != nil {
		return nil, fmt.Errorf("blockmanager: open: %w", err)
	}
	return m, nil
}

// readDamaged reads the newest complete metadata, from meta/ or from the journal.
func (m *Manager) readDamaged() (err error) {
	o := &m.o
	if m.anchor, err = readAnchor(o); err != nil {
		o.tolerance.report(Damage{File: anchorName, Problem: err.Error()})
		m.anchor = &anchor{instance: o.Instance}
	}
	found, err := readMeta(o)
	whole := err == nil
	if !whole {
		o.tolerance.report(Damage{File: "meta", Problem: err.Error()})
	}
	j, jerr := readJournal(o.FS, o.journalPath(JournalName), o.Instance)
	if jerr == nil {
		var copied *state
		if copied, jerr = j.load(o); jerr == nil && (found == nil || copied.epoch > found.epoch) {
			found = copied
		}
	}
	if found == nil {
		return fault.Corruptf("%w; %w", err, jerr)
	}
	m.state = found
	switch i := newestSlot(&m.anchor.slots); {
	case i >= 0 && !m.anchor.slots[i].accepts(found.root):
		o.tolerance.report(Older(found.epoch, m.anchor.slots[i].epoch))
	case i < 0 && !whole && j.problem != "":
		o.tolerance.report(Damage{File: "meta", Lost: true,
			Problem: fmt.Sprintf("the newest readable metadata is of epoch %d, and may not "+
				"be the last: %s: %s",
				found.epoch, JournalName, j.problem)})
	}
	return m.openContainers()
}

// Older returns the damage of a store whose newest readable metadata is of epoch, although the
// store had reached a later epoch.
func Older(epoch, reached uint64) Damage {
	return Damage{File: "meta", Lost: true,
		Problem: fmt.Sprintf("the newest readable metadata is of epoch %d, the store had "+
			"reached epoch %d", epoch, reached)}
}

// Identity returns the identity of a store whose own record of it is lost, from the first other
// file that can be read and has it: the journal, the anchor, a container. Errors: ErrCorrupt if no
// file has it.
func Identity(fsys vfs.FS, dir string) (instance [16]byte, err error) {
	o := Options{FS: fsys, Dir: dir}
	if j, err := readJournal(fsys, o.journalPath(JournalName), [16]byte{}); err == nil {
		return j.instance, nil
	}
	paths := []string{o.anchorPath()}
	names, _ := fsys.List(o.dataDir())
	for _, name := range names {
		if _, ok := containerName(name); ok {
			paths = append(paths, o.dataPath(name))
		}
	}
	for _, path := range paths {
		if id, ok := pageInstance(fsys, path); ok {
			return id, nil
		}
	}
	return instance, fault.Corruptf("blockmanager: no file names the store")
}

// pageInstance returns the instance in the first page of a file that has a valid one, of the anchor
// or of a container, which have it at the same place.
func pageInstance(fsys vfs.FS, path string) (id [16]byte, ok bool) {
	f, err := fsys.Open(path, false)
	if err != nil {
		return id, false
	}
	defer f.Close()
	page := make([]byte, pageLen)
	for _, off := range []int64{0, slotLen} {
		if n, _ := f.ReadAt(page, off); n < len(page) {
			return id, false
		}
		copy(id[:], page[pageInstanceOff:])
		_, err := decodeSlot(page, id)
		if err == nil || checkHeader(page, id, containerID(page[headerContainerOff:headerZeroOff])) == nil {
			return id, true
		}
	}
	return id, false
}

// BlockSize returns the size, in bytes, at whose multiples blocks begin.
func (m *Manager) BlockSize() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.format.blockSize
}

// openDamagedContainer opens a container of which openContainer has returned err. Without a file,
// its blocks are ErrCorrupt.
func openDamagedContainer(o *Options, c *container, err error) {
	o.tolerance.report(Damage{File: "data/" + c.name(), Problem: err.Error()})
	o.tolerance.doubtful[c] = true
	if f, err := o.FS.Open(o.dataPath(c.name()), false); err == nil {
		c.file = newSharedFile(f)
		o.tolerance.doubtful[c] = checkContainer(o, c.id, f, 0) != nil
	}
}

// Blocks lists the blocks of the last commit, by ID.
func (m *Manager) Blocks() []BlockInfo {
	m.mu.RLock()
	defer m.mu.RUnlock()
	list := make([]BlockInfo, 0, len(m.state.blocks))
	for _, b := range m.state.blocks {
		list = append(list, b.info())
	}
	slices.SortFunc(list, func(a, b BlockInfo) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Counters returns the counters as of the last commit.
func (m *Manager) Counters() Counters {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return Counters{Epoch: m.state.epoch, Mark: m.state.mark, LogStart: m.state.logStart}
}

// ReadBlock returns a reader of a block, as Snapshot.ReadBlock does.
func (m *Manager) ReadBlock(id block.ID) (io.ReadCloser, error) {
	src, err := m.OpenBlock(id)
	if err != nil {
		return nil, err
	}
	return &blockReader{src: src, b: src.(*source).b, sum: xxh3.New()}, nil
}

// tolerance is the damage that OpenDamaged has found, and decides what else is accepted.
type tolerance struct {
	report   func(Damage)
	doubtful map[*container]bool // files that may be another container's; complete after the open

	mu   sync.Mutex
	sums map[uint64]block.ID // the checksums of all blocks; nil until they are needed
	may  map[block.ID]bool   // results of accepts
}

// accepts reports whether a damaged block is accepted although its end is not as it was: there may
// be cblocks in it that can be read, each with a checksum. It must be in the right container, and
// must not be another block in a wrong place. A nil tolerance accepts nothing.
func (t *tolerance) accepts(s *source) bool {
	if t == nil || t.doubtful[s.b.in] {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	may, known := t.may[s.b.id]
	if known {
		return may
	}
	if t.sums == nil {
		t.sums, t.may = map[uint64]block.ID{}, map[block.ID]bool{}
		for id, b := range s.m.state.blocks {
			t.sums[b.sum] = id
		}
	}
	sum := xxh3.New()
	n, err := io.Copy(sum, io.NewSectionReader(s, 0, s.b.length))
	_, other := t.sums[sum.Sum64()]
	may = err == nil && !other || n > 0 && errors.Is(err, fault.ErrCorrupt) // the file ends within it
	t.may[s.b.id] = may
	return may
}

// noFile returns the error for a block whose container does not open.
func noFile(b *liveBlock) error {
	return fault.Corruptf("blockmanager: block %d: container %s does not open", b.id, b.container)
}

// Create begins a block with a new ID, which AddBlock does not use. No other call than Create and
// Finish may follow until it is finished.
func (b *Builder) Create() (block.Sink, error) { return b.c.Create() }

// Finish completes a block that Create began.
func (b *Builder) Finish(s block.Sink) error { return b.c.Finish(s) }
