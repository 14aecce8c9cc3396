package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/fault"
)

// Backup adds a backup of a store as of now. Writers and readers of the store continue; a read-only
// store will do. If there is no repository, Backup makes it.
//
// Errors: ErrNotRepository if the storage has something else; ErrLocked; ErrCorrupt, in the store
// or in the repository; ErrNoSpace; errors of Store.Image; ctx.Err(). After an error the repository
// has the backups that it had before.
func (r *Repository) Backup(ctx context.Context, store *oribi.Store) (Backup, error) {
	s, err := r.backup(ctx, store)
	return s, errorf("create", err)
}

func (r *Repository) backup(ctx context.Context, store *oribi.Store) (s Backup, err error) {
	l, err := r.lockNew(ctx)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	list, err := r.backups(ctx)
	if err != nil {
		return s, err
	}
	s.Number, s.Time = 1, time.Now().UTC().Truncate(time.Microsecond)
	if n := len(list); n > 0 {
		s.Number = list[n-1].Number + 1
	}
	if err := r.s.Delete(ctx, numbered(manifestsPrefix, s.Number)); err != nil { // of an interrupted backup
		return s, err
	}
	im, err := store.Image(ctx)
	if err != nil {
		return s, err
	}
	defer im.Close()
	info := im.Info()
	s.Timestamp, s.Store = info.Timestamp, info.UUID
	w := writer{ctx: ctx, r: r, im: im, s: &s}
	for _, old := range slices.Backward(list) {
		if old.Store == s.Store {
			w.previous = &old
			break
		}
	}
	if err := w.write(); err != nil {
		return s, err
	}
	b, err := s.encode()
	if err != nil {
		return s, err
	}
	return s, r.s.Put(ctx, numbered(backupsPrefix, s.Number), bytes.NewReader(b))
}

// writer writes the manifest of a backup, and the objects of its new blocks.
type writer struct {
	ctx      context.Context
	r        *Repository
	im       *oribi.Image
	s        *Backup
	previous *Backup // of the same store; nil = none
	known    knownBlocks
	have     []uint64 // the first 8 bytes of the hashes of all objects, ascending
	buf      []byte
}

// smallBlock is the length up to which a block is read once, into memory: for its hash and for its
// object.
const smallBlock = 1 << 20

func (w *writer) write() error {
	if err := w.list(); err != nil {
		return err
	}
	if w.previous != nil {
		// Only a manifest that is verified as a whole is used.
		if err := w.r.eachBlock(w.ctx, w.previous, func(oribi.ImageBlock, hash) error { return nil }); err != nil {
			return err
		}
		m, o, err := w.r.manifest(w.ctx, w.previous)
		if err != nil {
			return err
		}
		defer o.Close()
		if err := m.skipToBlocks(); err != nil {
			return err
		}
		w.known.m = m
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	w.ctx = ctx
	out, in := io.Pipe()
	m := newManifestWriter(in)
	done := make(chan error, 1)
	go func() {
		err := w.manifest(m)
		in.CloseWithError(err) // nil: the end of the file
		done <- err
	}()
	err := w.r.s.Put(ctx, numbered(manifestsPrefix, w.s.Number), out) // with the error of the writer
	cancel()
	out.Close()
	if werr := <-done; err == nil {
		err = werr
	}
	if err != nil {
		return err
	}
	w.s.manifestBytes, w.s.manifest = m.bytes, hash(m.sum.Sum(nil))
	w.s.Bytes = w.im.Info().BlockBytes + m.bytes
	w.s.NewBytes += m.bytes
	return nil
}

// list notes which objects there are.
func (w *writer) list() error {
	err := w.r.s.List(w.ctx, objectsPrefix, func(name string, _ int64) error {
		h, ok := parseObject(name)
		if !ok {
			return fault.Corruptf("%s: not the name of an object", name)
		}
		w.have = append(w.have, binary.BigEndian.Uint64(h[:]))
		return nil
	})
	slices.Sort(w.have)
	return err
}

func (w *writer) manifest(m *manifestWriter) error {
	if err := m.info(w.im.Info()); err != nil {
		return err
	}
	if err := w.im.Rows(m.row); err != nil {
		return err
	}
	if err := w.im.Records(func(record []byte) error {
		return errors.Join(w.ctx.Err(), m.record(kindRecord, record))
	}); err != nil {
		return err
	}
	done := int64(0)
	err := w.im.Blocks(func(b oribi.ImageBlock, open func() (io.ReadCloser, error)) error {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		h, err := w.object(b, open)
		if err != nil {
			return fmt.Errorf("block %d: %w", b.ID, err)
		}
		if done += b.Length; w.r.Progress != nil {
			w.r.Progress(done, w.im.Info().BlockBytes)
		}
		return m.block(b, h)
	})
	if err != nil {
		return err
	}
	return m.end()
}

// object makes sure that there is the object of a block, and returns its hash.
func (w *writer) object(b oribi.ImageBlock, open func() (io.ReadCloser, error)) (h hash, err error) {
	h, known, err := w.known.hash(b)
	if err != nil {
		return h, err
	}
	if known {
		if _, there := slices.BinarySearch(w.have, binary.BigEndian.Uint64(h[:])); there {
			return h, nil
		}
	}
	r, err := open()
	if err != nil {
		return h, err
	}
	if b.Length <= smallBlock {
		w.buf = slices.Grow(w.buf[:0], smallBlock)[:b.Length]
		_, err := io.ReadFull(r, w.buf)
		if err == nil {
			_, err = io.Copy(io.Discard, r) // its checksum is compared at its end
		}
		if err := errors.Join(err, r.Close()); err != nil {
			return h, err
		}
		h = sha256.Sum256(w.buf)
		return h, w.put(h, b.Length, bytes.NewReader(w.buf))
	}
	sum := sha256.New()
	_, err = io.Copy(sum, contextReader{w.ctx, r})
	if err := errors.Join(err, r.Close()); err != nil {
		return h, err
	}
	h = hash(sum.Sum(nil))
	if r, err = open(); err != nil {
		return h, err
	}
	return h, errors.Join(w.put(h, b.Length, contextReader{w.ctx, r}), r.Close())
}

// put stores an object unless the repository has it: the name of an object is the hash of its
// bytes, so an object of the same name has the same bytes.
func (w *writer) put(h hash, length int64, r io.Reader) error {
	err := w.r.s.Put(w.ctx, objectName(h), r)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		w.s.NewBytes += length
	}
	return err
}

// knownBlocks finds the blocks of a store in an earlier manifest. Both are in the order of IDs.
type knownBlocks struct {
	m    *manifestReader // nil = none
	next oribi.ImageBlock
	h    hash
}

// hash returns the hash of a block. The IDs of successive calls rise.
func (k *knownBlocks) hash(b oribi.ImageBlock) (h hash, known bool, err error) {
	for k.m != nil && k.next.ID < b.ID {
		var ok bool
		if k.next, k.h, ok, err = k.m.block(); err != nil {
			return h, false, err
		} else if !ok {
			k.m = nil
		}
	}
	return k.h, k.m != nil && k.next == b, nil
}
