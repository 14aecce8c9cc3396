// Package loose opens loose files: column, bloom, delta files, and HFiles outside of a store. The
// verbs for them open no store.
package loose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
)

// A loose file is a column, bloom or delta file outside of a store. Its verbs open no store.

// With opens a loose file and closes it after use returns: "-" is stdin, and a file whose name
// ends in .gz is unpacked. Both, and pipes, are read into memory first. Errors name the file; every
// error about its bytes is damage.
func With(ctx context.Context, a *console.Console, name string, use func(src block.Source) error) error {
	src, done, err := openLoose(ctx, a, name)
	if err != nil {
		return looseError(name, err)
	}
	defer done()
	return looseError(name, use(src))
}

// looseError prefixes an error with the file's name and gives it an exit code.
func looseError(name string, err error) error {
	if err == nil || errors.Is(err, exit.ErrReaderGone) || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[*exit.Failure](err); ok {
		return err
	}
	if _, other := errors.AsType[*exit.OutputError](err); other {
		return err
	}
	if p, ok := errors.AsType[*fs.PathError](err); !ok || p.Path != name {
		err = &looseFileError{name, err}
	}
	if errors.Is(err, oribi.ErrUnsupported) || console.IsBadPack(err) {
		return exit.With(exit.Damage, err) // of unknown kind, or not a .gz file
	}
	return err
}

// looseFileError prefixes an error with the file's name. For the packages that read blocks, a loose
// file is block 0, which no store has; the message leaves that out.
type looseFileError struct {
	name string
	err  error
}

func (e *looseFileError) Error() string {
	return e.name + ": " + strings.ReplaceAll(e.err.Error(), ": block 0: ", ": ")
}

func (e *looseFileError) Unwrap() error { return e.err }

func openLoose(ctx context.Context, a *console.Console, name string) (src block.Source, done func(), err error) {
	if name != "-" && !strings.HasSuffix(name, ".gz") {
		info, err := os.Stat(name)
		if err != nil {
			return nil, nil, err
		}
		if info.Mode().IsRegular() {
			f, err := block.OpenFile(name)
			if err != nil {
				return nil, nil, err
			}
			return f, func() { f.Close() }, nil
		}
	}
	in, err := a.OpenInput(name)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(console.Interruptible(ctx, in), maxLooseBytes+1))
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxLooseBytes {
		return nil, nil,
			fmt.Errorf("larger than %d bytes, the maximum for a stream: decompress it to a file first", maxLooseBytes)
	}
	return &block.Memory{Bytes: data}, func() {}, nil
}

// maxLooseBytes bounds a loose file that is read into memory.
const maxLooseBytes = access.MemoryLimit
