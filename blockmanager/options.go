package blockmanager

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/oribi-db/oribi/vfs"
)

// Defaults of Options.
const (
	defaultBlockSize      = 4096
	defaultContainerBytes = 1 << 30
	defaultCacheBytes     = 8 << 20
)

// Options configure a manager. Zero fields mean their defaults.
type Options struct {
	// FS is the file system; default vfs.OS.
	FS vfs.FS
	// Dir is the directory of the store. It must exist.
	Dir string
	// Instance identifies the store. Every file contains it; a file of another store is refused.
	Instance [16]byte
	// ReadOnly makes Writable return ErrReadOnly.
	ReadOnly bool
	// Follow says that another process may write to the directory: Open reads the metadata as of
	// one moment, and a read of a block that the other process has dropped is ErrTooOld. An error
	// of Open may then be due to a change during the call; the caller tries again. Needs ReadOnly.
	Follow bool
	// BlockSize is the file system's block size in bytes, a power of two from 512 to 1 MiB: blocks
	// begin at its multiples. Format fixes it (default 4096); for Open, 0 means the recorded size.
	BlockSize int64
	// ContainerBytes is the size above which a container takes no more blocks; default 1 GiB.
	ContainerBytes int64
	// CacheBytes is the size of Pebble's cache; default 8 MiB.
	CacheBytes int64
	// BeforeCommit, if it is not nil, is called before each metadata commit and before each write
	// of the anchor alone. Its error poisons the manager: the caller no longer owns the directory.
	BeforeCommit func() error
	// Kept, if it is not nil, is called before space is freed, with the lock of commits held.
	// Readers in other processes may read what a commit after epoch has dropped, so it keeps its
	// space, unless the commit was before old.
	Kept func() (epoch uint64, old time.Time)
	// Logger takes warnings and Pebble's messages (at debug level); default: none.
	Logger *slog.Logger

	tolerance *tolerance // set by OpenDamaged; nil: damage is an error
}

// withDefaults returns a copy with each default filled in, except BlockSize.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Dir == "" {
		errs = append(errs, errors.New("no directory"))
	}
	if b := o.BlockSize; b != 0 && !validBlockSize(b) {
		errs = append(errs, fmt.Errorf("block size %d is not a power of two from 512 to 1 MiB", b))
	}
	if o.Follow && !o.ReadOnly {
		errs = append(errs, errors.New("a follower is read-only"))
	}
	if o.ContainerBytes < 0 || o.CacheBytes < 0 {
		errs = append(errs, errors.New("negative size"))
	}
	if o.ContainerBytes == 0 {
		o.ContainerBytes = defaultContainerBytes
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	}
	if err := errors.Join(errs...); err != nil {
		return o, fmt.Errorf("blockmanager: options: %w", err)
	}
	return o, nil
}

func validBlockSize(b int64) bool { return b >= 512 && b <= 1<<20 && b&(b-1) == 0 }

func (o *Options) metaDir() string                { return filepath.Join(o.Dir, "meta") }
func (o *Options) dataDir() string                { return filepath.Join(o.Dir, "data") }
func (o *Options) anchorPath() string             { return filepath.Join(o.Dir, anchorName) }
func (o *Options) journalPath(name string) string { return filepath.Join(o.Dir, name) }
func (o *Options) dataPath(name string) string    { return filepath.Join(o.Dir, "data", name) }
