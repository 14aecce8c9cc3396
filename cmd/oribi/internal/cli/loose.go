package cli

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
)

// A loose file is a column, bloom or delta file outside of a store. Its verbs open no store.

// withLoose opens a loose file and closes it after use returns: "-" is stdin, and a file whose name
// ends in .gz is unpacked. Both, and pipes, are read into memory first. Errors name the file; every
// error about its bytes is damage.
func (a *app) withLoose(ctx context.Context, name string, use func(src block.Source) error) error {
	src, done, err := a.openLoose(ctx, name)
	if err != nil {
		return looseError(name, err)
	}
	defer done()
	return looseError(name, use(src))
}

// looseError prefixes an error with the file's name and gives it an exit code.
func looseError(name string, err error) error {
	if err == nil || errors.Is(err, errReaderGone) || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[*failure](err); ok {
		return err
	}
	if _, other := errors.AsType[*outputError](err); other {
		return err
	}
	if p, ok := errors.AsType[*fs.PathError](err); !ok || p.Path != name {
		err = &looseFileError{name, err}
	}
	if errors.Is(err, oribi.ErrUnsupported) || isBadPack(err) {
		return withCode(exitDamage, err) // of unknown kind, or not a .gz file
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

func (a *app) openLoose(ctx context.Context, name string) (src block.Source, done func(), err error) {
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
	in, err := a.openInput(name)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(interruptible(ctx, in), maxLooseBytes+1))
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
const maxLooseBytes = memoryLimit
