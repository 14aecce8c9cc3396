package blockmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
	"github.com/zeebo/xxh3"
)

// Counters are what a manager records besides its blocks and the caller's rows.
type Counters struct {
	Epoch    uint64  // number of the last commit, from 1
	Mark     uint64  // every block ID that was ever handed out is below it
	LogStart lsn.LSN // lowest LSN that replay on this state needs
}

// Snapshot is the state of a manager as of one commit. Until it is closed, its blocks stay
// readable, whatever later commits drop. It is safe for concurrent use.
type Snapshot struct {
	Counters
	m      *Manager
	rows   []callerRow
	blocks []*liveBlock // by ID
	files  map[*container]*sharedFile
}

// Snapshot returns the state as of the last commit. The caller closes it before the manager.
//
// It takes the memory of a pointer for each block, and of two strings for each row; what they point
// to is in memory anyway. Errors: ErrClosed.
func (m *Manager) Snapshot() (*Snapshot, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed.Load() {
		return nil, fmt.Errorf("blockmanager: snapshot: %w", fault.ErrClosed)
	}
	st := m.state
	s := &Snapshot{
		Counters: Counters{Epoch: st.epoch, Mark: st.mark, LogStart: st.logStart},
		m:        m,
		rows:     st.caller.withPrefix(""),
		blocks:   make([]*liveBlock, 0, len(st.blocks)),
		files:    map[*container]*sharedFile{},
	}
	// As in source: a commit that drops a block either precedes this or sees the reference.
	for _, b := range st.blocks {
		b.refs.Add(1)
		s.blocks = append(s.blocks, b)
		if s.files[b.in] == nil {
			b.in.refs.Add(1)
			b.in.file.refs.Add(1)
			s.files[b.in] = b.in.file
		}
	}
	slices.SortFunc(s.blocks, func(a, b *liveBlock) int { return cmp.Compare(a.id, b.id) })
	return s, nil
}

// Rows calls fn for each of the caller's rows in key order. The slices never change, so fn may keep
// them. It stops at the first error of fn and returns it.
func (s *Snapshot) Rows(fn func(key, value []byte) error) error {
	for _, r := range s.rows {
		if err := fn([]byte(r.key), r.value); err != nil {
			return err
		}
	}
	return nil
}

// Len returns the number of blocks.
func (s *Snapshot) Len() int { return len(s.blocks) }

// Block returns the i-th block, in the order of IDs.
func (s *Snapshot) Block(i int) BlockInfo { return s.blocks[i].info() }

// ReadBlock returns a reader of the i-th block. If the bytes are not the block, it or the reader,
// at its end at the latest, returns ErrCorrupt. Errors: ErrClosed.
func (s *Snapshot) ReadBlock(i int) (io.ReadCloser, error) {
	b := s.blocks[i]
	file := s.files[b.in]
	b.refs.Add(1)
	b.in.refs.Add(1)
	file.refs.Add(1)
	src, err := (&source{m: s.m, b: b, file: file}).checked(nil, 0)
	if err != nil {
		return nil, err
	}
	return &blockReader{src: src, b: b, sum: xxh3.New()}, nil
}

// blockReader reads a block from its beginning to its end, and checks its checksum there.
type blockReader struct {
	src Source
	b   *liveBlock
	off int64
	sum *xxh3.Hasher

	cloned bool // what was not read is not verified
}

func (r *blockReader) Read(p []byte) (int, error) {
	if r.off < r.b.length {
		n, err := r.src.ReadAt(p[:min(int64(len(p)), r.b.length-r.off)], r.off)
		r.off += int64(n)
		r.sum.Write(p[:n])
		if r.off < r.b.length || err != nil && err != io.EOF {
			return n, err
		}
		return n, r.check()
	}
	if err := r.check(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

func (r *blockReader) check() error {
	if r.cloned {
		return nil
	}
	if got := r.sum.Sum64(); got != r.b.sum {
		return r.src.(*source).corrupt("checksum %016x, want %016x", got, r.b.sum)
	}
	return nil
}

func (r *blockReader) Close() error { return r.src.Close() }

// Close unpins the blocks. The space of those that were dropped may be freed by the next commit or
// confirmation. Close may be called twice, but not concurrently with other methods.
func (s *Snapshot) Close() error {
	var errs []error
	for _, b := range s.blocks {
		b.refs.Add(-1)
	}
	for c, file := range s.files {
		errs = append(errs, file.release())
		c.refs.Add(-1)
	}
	s.blocks, s.files, s.rows = nil, nil, nil
	return errors.Join(errs...)
}

func (b *liveBlock) info() BlockInfo { return BlockInfo{b.id, b.length, b.sum} }

// Builder makes a manager from given blocks and rows, such as the blocks and rows of a Snapshot. It
// must not be used by several goroutines at once.
type Builder struct {
	m       *Manager
	c       *Creation
	rows    []Row
	staged  int // bytes of rows
	last    block.ID
	mark    uint64
	copyBuf []byte

	cannotClone bool // the file system has refused to
}

// How many blocks or bytes of rows a Builder commits at once: more take memory, fewer take syncs.
const (
	builderBlocks   = 4096
	builderRowBytes = 4 << 20
)

// cloneBytes is the length from which on blocks are cloned: a copy of a shorter one takes less time
// than its extent in a file of many.
const cloneBytes = 64 << 10

// NewBuilder creates data/, meta/ and ANCHOR in a directory that has none of them. Blocks and rows
// are added by several commits: the directory is complete only when Close has returned nil.
func NewBuilder(o Options, c Counters) (*Builder, error) {
	if c.Epoch == 0 || c.Epoch >= maxEpoch/2 || c.Mark == 0 || c.Mark > maxMark/2 {
		return nil, fault.Corruptf("blockmanager: build: epoch %d, id mark %d", c.Epoch, c.Mark)
	}
	if err := formatWith(o, nil, c); err != nil {
		return nil, fmt.Errorf("blockmanager: build: %w", err)
	}
	m, err := Open(o)
	if err != nil {
		return nil, err
	}
	b := &Builder{m: m, mark: c.Mark}
	if err := m.Writable(); err != nil {
		b.Abort()
		return nil, err
	}
	b.c = m.NewCreation()
	return b, nil
}

// AddRow adds a row of the caller. It keeps the slices.
func (b *Builder) AddRow(r Row) error {
	b.rows = append(b.rows, r)
	if b.staged += len(r.Key) + len(r.Value); b.staged < builderRowBytes {
		return nil
	}
	return b.commit()
}

// AddBlock adds a block with its ID, which is above the ID of the block before and below the mark.
//
// If r comes from Snapshot.ReadBlock, and the file system can share bytes of files, a block of
// cloneBytes or more shares its bytes with the other file. They are not read then, except for the
// end, so damage in them stays in the copy, whose checksum shows it.
//
// Errors: ErrCorrupt if r does not return exactly the bytes of which info has length and sum;
// ErrNoSpace; ctx.Err(); the errors of r.
func (b *Builder) AddBlock(ctx context.Context, info BlockInfo, r io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if info.ID <= b.last || uint64(info.ID) >= b.mark || info.Length < 0 {
		return fault.Corruptf("blockmanager: build: block %d of %d bytes after block %d, id mark %d", info.ID,
			info.Length, b.last, b.mark)
	}
	b.last = info.ID
	if from, ok := r.(*blockReader); ok && info.Length >= cloneBytes && !b.cannotClone {
		err := b.c.cloneBlock(info, from)
		if b.cannotClone = errors.Is(err, fault.ErrUnsupported); !b.cannotClone {
			return b.added(err)
		}
	}
	if b.copyBuf == nil {
		b.copyBuf = make([]byte, verifyChunk)
	}
	return b.added(b.c.copyBlock(info, contextReader{ctx, r}, b.copyBuf))
}

// contextReader is a reader that ends with its context.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// added ends AddBlock.
func (b *Builder) added(err error) error {
	if err != nil {
		return fmt.Errorf("blockmanager: build: %w", err)
	}
	if len(b.c.blocks) < builderBlocks {
		return nil
	}
	return b.commit()
}

// cloneBlock is copyBlock by CloneRange. With ErrUnsupported nothing has changed.
func (c *Creation) cloneBlock(b BlockInfo, r *blockReader) error {
	src := r.src.(*source)
	size := c.m.state.format.blockSize
	if r.off > 0 || r.b.length != b.Length || r.b.sum != b.Sum || src.m.state.format.blockSize != size {
		return fault.Unsupportedf("block %d is another one", b.ID)
	}
	tail := make([]byte, min(b.Length, footerProbe))
	if _, err := src.ReadAt(tail, b.Length-int64(len(tail))); err != nil {
		return err
	}
	in, err := c.acquire()
	if err != nil {
		return err
	}
	row := blockRow{container: in.id, off: in.end, length: b.Length, sum: b.Sum}
	row.identity = identity(c.m.o.Instance, b.ID, &row, tail)
	err = in.clone(&c.m.o, src.file.f, r.b.off, row.off, alignUp(b.Length, size))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.free = append(c.free, in)
		if errors.Is(err, fault.ErrUnsupported) {
			return err
		}
		return c.m.failed(err)
	}
	c.add(&liveBlock{id: b.ID, blockRow: row, in: in})
	r.off, r.cloned = b.Length, true
	return nil
}

// clone clones n bytes of another file.
func (c *container) clone(o *Options, src vfs.File, srcOff, off, n int64) error {
	c.ioMu.Lock()
	defer c.ioMu.Unlock()
	f, err := c.writer(o)
	if err == nil {
		err = vfs.CloneRange(f, src, srcOff, off, n)
	}
	if err != nil {
		return fmt.Errorf("container %s: clone %d bytes at %d: %w", c.id, n, off, err)
	}
	c.reserved = max(c.reserved, off+n)
	return nil
}

func (b *Builder) commit() error {
	if err := b.c.Sync(); err != nil {
		return err
	}
	if err := b.m.Commit(Edit{Created: []*Creation{b.c}, Put: b.rows}); err != nil {
		return err
	}
	b.c, b.rows, b.staged = b.m.NewCreation(), nil, 0
	return nil
}

// Close makes everything that was added durable and closes the manager. Abort must not follow.
func (b *Builder) Close() error {
	if err := b.commit(); err != nil {
		b.Abort()
		return err
	}
	return b.m.Close()
}

// Abort ends the build. The caller removes what is in the directory.
func (b *Builder) Abort() {
	if b.c != nil {
		b.c.Abort()
	}
	b.m.Poison(errors.New("the build was aborted")) // so that Close writes nothing
	b.m.Close()
}
