package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/fault"
)

// Repository is a set of backups.
type Repository struct {
	s Storage

	// Progress, if not nil, is called by Backup and Restore after each block, with the bytes of
	// blocks so far and of all. It must be set before they are called.
	Progress oribi.Progress
}

// Open returns the repository in a storage. It reads and writes nothing: the first Backup makes the
// repository.
func Open(s Storage) *Repository { return &Repository{s: s} }

// errorf returns err as the error of a call.
func errorf(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("backup: %s: %w", what, err)
}

// readSmall reads an object of at most limit bytes, and one byte more of a longer one.
func (r *Repository) readSmall(ctx context.Context, name string, limit int64) ([]byte, error) {
	o, err := r.s.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(o, limit+1))
	return b, errors.Join(err, o.Close())
}

// check returns an error unless the storage has a repository.
func (r *Repository) check(ctx context.Context) error {
	b, err := r.readSmall(ctx, formatName, formatLen)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotRepository
	} else if err != nil {
		return err
	}
	return checkFormat(b)
}

// checkEmpty returns ErrNotRepository if the storage has an object.
func (r *Repository) checkEmpty(ctx context.Context) error {
	return r.s.List(ctx, "", func(name string, _ int64) error {
		return fmt.Errorf("%s is in it: %w", name, ErrNotRepository)
	})
}

// lock locks an existing repository.
func (r *Repository) lock(ctx context.Context, exclusive bool) (io.Closer, error) {
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	return r.s.Lock(ctx, exclusive)
}

// lockNew locks the repository for a writer, and makes it if the storage is empty.
func (r *Repository) lockNew(ctx context.Context) (io.Closer, error) {
	err := r.check(ctx)
	if errors.Is(err, ErrNotRepository) {
		err = r.checkEmpty(ctx)
	}
	if err != nil {
		return nil, err
	}
	l, err := r.s.Lock(ctx, true)
	if err != nil {
		return nil, err
	}
	// Another process may have made it before this one locked it.
	if err = r.check(ctx); errors.Is(err, ErrNotRepository) {
		if err = r.checkEmpty(ctx); err == nil {
			err = r.s.Put(ctx, formatName, bytes.NewReader(encodeFormat()))
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Backups lists the backups, oldest first. Errors: ErrNotRepository, ErrCorrupt.
func (r *Repository) Backups(ctx context.Context) ([]Backup, error) {
	err := r.check(ctx)
	var list []Backup
	if err == nil {
		list, err = r.backups(ctx)
	}
	return list, errorf("list", err)
}

func (r *Repository) backups(ctx context.Context) (list []Backup, err error) {
	err = r.s.List(ctx, backupsPrefix, func(name string, _ int64) error {
		if _, ok := parseNumber(backupsPrefix, name); !ok {
			return fault.Corruptf("%s: not the name of a backup", name)
		}
		b, err := r.readSmall(ctx, name, summaryLen)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // pruned since
		} else if err != nil {
			return err
		}
		s, err := decodeSummary(name, b)
		list = append(list, s)
		return err
	})
	slices.SortFunc(list, func(a, b Backup) int { return int(int64(a.Number) - int64(b.Number)) })
	return list, err
}

// manifest opens the manifest of a backup. The caller closes the second result.
func (r *Repository) manifest(ctx context.Context, s *Backup) (*manifestReader, io.Closer, error) {
	name := numbered(manifestsPrefix, s.Number)
	o, err := r.s.Get(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fault.Corruptf("%s: missing", name)
	} else if err != nil {
		return nil, nil, err
	}
	m, err := newManifestReader(name, contextReader{ctx, o})
	if err != nil {
		return nil, nil, errors.Join(err, o.Close())
	}
	return m, o, nil
}

// eachBlock verifies the manifest of a backup and calls fn with each block. The checksum of the
// whole manifest is checked last, so the blocks are verified only if eachBlock returns nil.
func (r *Repository) eachBlock(ctx context.Context, s *Backup, fn func(b oribi.ImageBlock, h hash) error) (err error) {
	m, o, err := r.manifest(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	if err := m.skipToBlocks(); err != nil {
		return err
	}
	for {
		b, h, ok, err := m.block()
		if err != nil {
			return err
		}
		if !ok {
			return m.end(s)
		}
		if err := fn(b, h); err != nil {
			return err
		}
	}
}

func (m *manifestReader) skipToBlocks() error {
	if err := m.rows(func(_, _ []byte) error { return nil }); err != nil {
		return err
	}
	return m.records(func([]byte) error { return nil })
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
