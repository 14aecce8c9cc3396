// Package kvlines prints keys and values, and reads files of them.
//
// A byte string is printed as itself if it is UTF-8 without control characters and does not begin
// with 0x, otherwise as 0x and lower-case hex. Input takes the same forms.
//
//	JSON    {"key":"user/1","value":"0x00ff"}, one object per line, or one array of them
//	CSV     a header with the names key and value, in any order; "" is the empty key
//	HFile   of Hudi: its keys and values; of HBase: rows with their newest live version
package kvlines

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"

	"github.com/oribi-db/oribi/cmd/oribi/internal/apply"
	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/cmd/oribi/internal/hfilelines"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/kv"
)

// AppendText appends a byte string as it is printed.
func AppendText(dst, b []byte) []byte {
	if celltext.IsText(b) {
		return append(dst, b...)
	}
	return hex.AppendEncode(append(dst, "0x"...), b)
}

// AppendJSON appends what AppendText does as a JSON string.
func AppendJSON(dst, b []byte) []byte { return celltext.AppendBytes(dst, b) }

// Parse parses a byte string as AppendText appends it.
func Parse(text string) ([]byte, error) { return hfilelines.ParseBytes(text) }

// Check refuses what no bucket takes.
func Check(p kv.Pair) error {
	switch {
	case len(p.Key) > kv.MaxKeyBytes:
		return fmt.Errorf("a key of %d bytes, at most %d are allowed", len(p.Key), kv.MaxKeyBytes)
	case len(p.Value) > kv.MaxValueBytes:
		return fmt.Errorf("a value of %d bytes, at most %d are allowed", len(p.Value), kv.MaxValueBytes)
	}
	return nil
}

// entries yields what next returns until it returns io.EOF. Other errors are errors of a line.
func entries(name string, line func() int, next func() (kv.Pair, error)) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		for {
			p, err := next()
			if err == io.EOF {
				return
			}
			if err == nil {
				err = Check(p)
			}
			if err != nil {
				yield(kv.Pair{}, &apply.LineError{Name: name, Line: line(), Err: err})
				return
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// JSON reads pairs from JSON. A pair is valid until the next step. name is the name of the input,
// for errors. Errors are *apply.LineError and come as the last step.
func JSON(name string, in io.Reader) iter.Seq2[kv.Pair, error] {
	r := hfilelines.NewReader(in)
	return entries(name, r.Line, func() (kv.Pair, error) {
		p, err := r.KeyValue()
		return kv.Pair{Key: p.Key, Value: p.Value}, err
	})
}

// CSV reads pairs from CSV, as JSON does from JSON.
func CSV(name string, in io.Reader) iter.Seq2[kv.Pair, error] {
	r := csvin.NewReader(in, ',')
	key := -1 // index of its field
	return entries(name, func() int { return r.Line }, func() (p kv.Pair, err error) {
		if key < 0 {
			if key, err = header(r); err != nil {
				return p, err
			}
		}
		if err := r.Next(); err != nil {
			if bad, ok := errors.AsType[*csvin.BadRecord](err); ok {
				err = bad.Cause
			}
			return p, err
		}
		fields := r.Fit(2)
		if len(fields) != 2 {
			return p, fmt.Errorf("want 2 fields, a key and a value, not %d", len(fields))
		}
		if f := &fields[key]; len(f.Text) == 0 && !f.Quoted {
			return p, errors.New(`column "key": is empty: an empty key is written ""`)
		}
		for i, to := range [2]*[]byte{&p.Key, &p.Value} {
			if *to, err = Parse(string(fields[i^key].Text)); err != nil {
				return p, fmt.Errorf("column %q: %w", [2]string{"key", "value"}[i], err)
			}
		}
		return p, nil
	})
}

// header reads the header and returns the index of the key.
func header(r *csvin.Reader) (key int, err error) {
	names, err := r.Header(csvin.Names{})
	switch {
	case err != nil:
		return -1, err
	case len(names) == 2 && names[0] == "key" && names[1] == "value":
		return 0, nil
	case len(names) == 2 && names[0] == "value" && names[1] == "key":
		return 1, nil
	}
	return -1, fmt.Errorf("the header has the names %q, want key and value", names)
}

// KeyText returns a key, or the beginning of a long one, for an error.
func KeyText(key []byte) string {
	const most = 64 // bytes
	if len(key) <= most {
		return string(AppendJSON(nil, key))
	}
	n := most
	for n > most-utf8.UTFMax && !utf8.RuneStart(key[n]) {
		n--
	}
	return fmt.Sprintf("%s… of %d bytes", AppendJSON(nil, key[:n]), len(key))
}
