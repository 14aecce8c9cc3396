package hfilecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/hfilelines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/hfile"
	"github.com/oribi-db/oribi/schema"
)

// Columns of answers in tables and in CSV; keys of cells are JSON.
var (
	cellSeekColumns  = console.TextColumns([]string{"seek_to"}, "key", "seek_to", "at", "then", "seek_before", "before")
	keySeekColumns   = console.TextColumns([]string{"seek_to"}, "key", "seek_to", "at", "value")
	cellProbeColumns = console.TextColumns(nil, "row", "qualifier", "general", "delete_family")
	keyProbeColumns  = console.TextColumns(nil, "key", "present")
)

// Seek is the verb "oribi hfile seek".
func Seek(a *console.Console) *cobra.Command {
	c := hfileKeys(a, "seek FILE KEYS", "Find keys: the entries at, before, and after each",
		func(r *hfile.Reader, hudi bool) (hfileAnswers, error) {
			s := &hfileSeeker{r: r}
			if hudi {
				return hfileAnswers{keySeekColumns, s.key}, nil
			}
			return hfileAnswers{cellSeekColumns, s.cell}, nil
		})
	c.Long = c.Short + `.

KEYS has one key per line: {"row":…} with family, qualifier, ts, and type where they matter, or
{"key":…} in Hudi's view. seek_to is 0 if the key is there, 1 if the cursor is on the entry before
it, -1 if it is before the first entry, -2 if it is between the index key of a block and the block's
first entry, and 2 (only in Hudi's view) if it is after the last entry.`
	return c
}

// Probe is the verb "oribi hfile probe".
func Probe(a *console.Console) *cobra.Command {
	c := hfileKeys(a, "probe FILE KEYS", "Ask the Bloom filters whether keys may be in the file",
		func(r *hfile.Reader, hudi bool) (hfileAnswers, error) {
			p, err := newHFileProber(r)
			if err != nil {
				return hfileAnswers{}, err
			}
			if hudi {
				return hfileAnswers{keyProbeColumns, p.key}, nil
			}
			return hfileAnswers{cellProbeColumns, p.column}, nil
		})
	c.Long = c.Short + `.

KEYS has one key per line: {"row":…}, for filters of kind ROWCOL with qualifier, or {"key":…} in
Hudi's view. false is certain, true may be wrong. All filters are checked before the first answer.`
	return c
}

// hfileAnswers answers the keys of one command.
type hfileAnswers struct {
	columns []schema.Column
	// answer reads a key and appends its answer. A keyError is an error of the line.
	answer func(dst []byte, in *hfilelines.Reader) ([]byte, error)
}

// keyError is an error of a line of KEYS, or io.EOF after the last.
type keyError struct{ err error }

func (k *keyError) Error() string { return k.err.Error() }
func (k *keyError) Unwrap() error { return k.err }

// hfileKeys makes a verb that answers keys one by one, as they arrive.
func hfileKeys(
	a *console.Console, use, short string, open func(r *hfile.Reader, hudi bool) (hfileAnswers, error),
) *cobra.Command {
	var flags hfileFlags
	c := verb.New(a, use, short, func(cmd *cobra.Command, args []string) error {
		form, err := flags.check(a)
		if err != nil {
			return err
		}
		if args[0] == "-" && args[1] == "-" {
			return exit.Usage(errors.New("FILE and KEYS cannot both be stdin"))
		}
		return With(cmd.Context(), a, args[0], func(r *hfile.Reader) error {
			answers, err := open(r, flags.hudi(r))
			if err != nil {
				return err
			}
			in, err := a.OpenInput(args[1])
			if err != nil {
				return exit.With(exit.Failed, err)
			}
			defer in.Close()
			p := a.Objects(form, answers.columns)
			return console.Ended(answers.all(cmd.Context(), args[1], in, p), p)
		})
	})
	flags.add(c)
	return c
}

// all answers the keys of in.
func (h *hfileAnswers) all(ctx context.Context, name string, in io.Reader, p *console.Objects) error {
	keys := hfilelines.NewReader(&flushBefore{console.Interruptible(ctx, in), p})
	var line []byte
	for {
		var err error
		line, err = h.answer(line[:0], keys)
		if k, ok := errors.AsType[*keyError](err); ok {
			switch {
			case k.err == io.EOF:
				return nil
			case errors.Is(k.err, context.Canceled), errors.Is(k.err, exit.ErrReaderGone):
				return k.err
			}
			return exit.With(exit.Failed, fmt.Errorf("%s:%d: %w", name, keys.Line(), k.err))
		}
		if err != nil {
			return err
		}
		if err := p.Print(line); err != nil {
			return err
		}
	}
}

// flushBefore prints the answers so far before it reads: the read may wait for the next key.
type flushBefore struct {
	in io.Reader
	p  *console.Objects
}

func (f *flushBefore) Read(b []byte) (int, error) {
	if f.p.JSON != nil { // tables wait for their width
		if err := f.p.Flush(); err != nil {
			return 0, err
		}
	}
	return f.in.Read(b)
}

// hfileSeeker answers with the entries at, before, and after keys, with new cursors for each.
type hfileSeeker struct{ r *hfile.Reader }

// cell answers in HBase's view.
func (s *hfileSeeker) cell(dst []byte, in *hfilelines.Reader) ([]byte, error) {
	key, err := in.SeekKey()
	if err != nil {
		return nil, &keyError{err}
	}
	c := s.r.NewCursor(hfile.CursorOptions{LikeHBase: true})
	code, err := c.SeekTo(key)
	if err != nil {
		return nil, err
	}
	dst = hfilelines.AppendKey(append(dst, `{"key":`...), &key, 0)
	dst = strconv.AppendInt(append(dst, `,"seek_to":`...), int64(code), 10)
	found := code != hfile.BeforeFile
	dst = appendCurrent(append(dst, `,"at":`...), c, found)
	if found {
		next := c.Next()
		if err := c.Err(); err != nil {
			return nil, err
		}
		dst = appendCurrent(append(dst, `,"then":`...), c, next)
	}
	c = s.r.NewCursor(hfile.CursorOptions{LikeHBase: true})
	before, err := c.SeekBefore(key)
	if err != nil {
		return nil, err
	}
	dst = strconv.AppendBool(append(dst, `,"seek_before":`...), before)
	dst = appendCurrent(append(dst, `,"before":`...), c, before)
	return append(dst, '}'), nil
}

// appendCurrent appends the key under a cursor, null if it is on none.
func appendCurrent(dst []byte, c *hfile.Cursor, on bool) []byte {
	if !on {
		return append(dst, "null"...)
	}
	cell := c.Cell()
	return hfilelines.AppendKey(dst, &cell.Key, cell.Sequence)
}

// key answers in Hudi's view. The cursor begins on the first entry, as Hudi's reader does.
func (s *hfileSeeker) key(dst []byte, in *hfilelines.Reader) ([]byte, error) {
	key, err := in.Key()
	if err != nil {
		return nil, &keyError{err}
	}
	c := s.r.NewCursor(hfile.CursorOptions{View: hfile.ViewHudi})
	c.First()
	code, err := c.SeekTo(hfile.FirstOnRow(key))
	if err != nil {
		return nil, err
	}
	dst = hfilelines.AppendBytes(append(dst, `{"key":`...), key)
	dst = strconv.AppendInt(append(dst, `,"seek_to":`...), int64(code), 10)
	if code == hfile.AfterFile {
		return append(dst, `,"at":null}`...), nil
	}
	cell := c.Cell()
	dst = hfilelines.AppendBytes(append(dst, `,"at":`...), cell.Row)
	dst = hfilelines.AppendBytes(append(dst, `,"value":`...), cell.Value)
	return append(dst, '}'), nil
}

// hfileProber asks the Bloom filters of a file; a filter that the file lacks is nil.
type hfileProber struct {
	general, deleteFamily *hfile.BloomFilter
	hudi                  *hfile.HudiBloom
}

// newHFileProber reads and checks all filters of a file.
func newHFileProber(r *hfile.Reader) (p *hfileProber, err error) {
	p = &hfileProber{}
	if p.general, err = r.Bloom(); err != nil {
		return nil, err
	}
	if p.deleteFamily, err = r.DeleteFamilyBloom(); err != nil {
		return nil, err
	}
	if p.hudi, err = r.HudiBloom(); err != nil {
		return nil, err
	}
	for _, f := range []*hfile.BloomFilter{p.general, p.deleteFamily} {
		if f != nil {
			if err := f.Check(); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// column answers in HBase's view.
func (p *hfileProber) column(dst []byte, in *hfilelines.Reader) ([]byte, error) {
	row, qualifier, err := in.Column()
	if err != nil {
		return nil, &keyError{err}
	}
	dst = hfilelines.AppendBytes(append(dst, `{"row":`...), row)
	if qualifier != nil {
		dst = hfilelines.AppendBytes(append(dst, `,"qualifier":`...), qualifier)
	}
	for _, f := range []struct {
		name   string
		filter *hfile.BloomFilter
	}{{"general", p.general}, {"delete_family", p.deleteFamily}} {
		if f.filter == nil {
			continue
		}
		maybe, err := f.filter.MayContain(row, qualifier)
		if err != nil {
			return nil, err
		}
		dst = append(append(append(dst, `,"`...), f.name...), `":`...)
		dst = strconv.AppendBool(dst, maybe)
	}
	return append(dst, '}'), nil
}

// key answers in Hudi's view.
func (p *hfileProber) key(dst []byte, in *hfilelines.Reader) ([]byte, error) {
	key, err := in.Key()
	if err != nil {
		return nil, &keyError{err}
	}
	dst = hfilelines.AppendBytes(append(dst, `{"key":`...), key)
	if p.hudi != nil {
		dst = strconv.AppendBool(append(dst, `,"present":`...), p.hudi.MayContain(key))
	}
	return append(dst, '}'), nil
}
