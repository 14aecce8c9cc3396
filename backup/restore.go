package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	gohash "hash"
	"io"
	"io/fs"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/fault"
)

// Restore makes a store from backup number, 0 for the newest, in dir, which must not exist or be
// empty. All of it is verified while it is restored. The store has a UUID of its own; see
// oribi.WriteImage, also for the fields of o that it uses.
//
// Errors: ErrNotRepository; ErrNotFound if there is no such backup; ErrLocked if another process
// writes to the repository; ErrCorrupt; errors of oribi.WriteImage. After an error there is no dir,
// or it is empty.
func (r *Repository) Restore(
	ctx context.Context, number uint64, dir string, o *oribi.Options,
) (oribi.CopyResult, error) {
	c, err := r.restore(ctx, number, dir, o)
	return c, errorf("restore", err)
}

func (r *Repository) restore(
	ctx context.Context, number uint64, dir string, o *oribi.Options,
) (c oribi.CopyResult, err error) {
	l, err := r.lock(ctx, false)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	list, err := r.backups(ctx)
	if err != nil {
		return c, err
	}
	var s *Backup
	for i := range list {
		if number == 0 || list[i].Number == number {
			s = &list[i]
		}
	}
	switch {
	case s == nil && number == 0:
		return c, fmt.Errorf("the repository has no backup: %w", fault.ErrNotFound)
	case s == nil:
		return c, fmt.Errorf("backup %d: %w", number, fault.ErrNotFound)
	}
	m, object, err := r.manifest(ctx, s)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	return oribi.WriteImage(ctx, dir, &stored{ctx, r, s, m}, o, r.Progress)
}

// stored is the image of a backup.
type stored struct {
	ctx context.Context
	r   *Repository
	s   *Backup
	m   *manifestReader
}

func (i *stored) Info() oribi.ImageInfo { return i.m.info }

func (i *stored) Rows(fn func(key, value []byte) error) error { return i.m.rows(fn) }

func (i *stored) Records(fn func(record []byte) error) error { return i.m.records(fn) }

// Blocks ends with the verification of the manifest.
func (i *stored) Blocks(fn func(b oribi.ImageBlock, open func() (io.ReadCloser, error)) error) error {
	for {
		b, h, ok, err := i.m.block()
		if err != nil {
			return err
		}
		if !ok {
			return i.m.end(i.s)
		}
		if err := fn(b, func() (io.ReadCloser, error) { return i.r.object(i.ctx, h, b.Length) }); err != nil {
			return err
		}
	}
}

// object returns the bytes of an object. The reader returns ErrCorrupt, with its last byte at the
// latest, unless they have the length and the hash.
func (r *Repository) object(ctx context.Context, h hash, length int64) (io.ReadCloser, error) {
	o, err := r.s.Get(ctx, objectName(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Corruptf("%s: missing", objectName(h))
	} else if err != nil {
		return nil, err
	}
	return &objectReader{o, sha256.New(), h, length}, nil
}

type objectReader struct {
	io.ReadCloser
	sum  gohash.Hash
	want hash
	left int64
}

func (r *objectReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.sum.Write(p[:n])
	r.left -= int64(n)
	if (err == io.EOF || r.left <= 0) && (r.left != 0 || hash(r.sum.Sum(nil)) != r.want) {
		err = fault.Corruptf("%s: has other bytes", objectName(r.want))
	}
	return n, err
}
