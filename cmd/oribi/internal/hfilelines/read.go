package hfilelines

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/oribi-db/oribi/hfile"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/jsonin"
)

// maxLineBytes bounds a line: a value that fills the largest block which is read by default takes
// two characters a byte.
const maxLineBytes = 80 << 20

// Reader reads lines. The results of its methods are valid until the next call. The methods return
// io.EOF after the last line; the first other error ends the reading. Blank lines are skipped.
type Reader struct {
	records *jsonin.Records
	arena   []byte // byte strings of the line
}

// NewReader returns a reader of the lines of in.
func NewReader(in io.Reader) *Reader {
	return &Reader{records: jsonin.NewRecords(in, maxLineBytes), arena: make([]byte, 0, 4096)}
}

// Line returns the number of the line last read, from 1.
func (r *Reader) Line() int { return r.records.Line }

// Cell reads an entry of HBase's view. All fields but mvcc and tags must be there.
func (r *Reader) Cell() (c hfile.Cell, err error) {
	err = r.object([]string{"row", "family", "qualifier", "ts", "type", "value"}, []string{"mvcc", "tags"},
		func(name string, value []byte) (err error) {
			switch name {
			case "value":
				c.Value, err = r.bytes(value)
			case "mvcc":
				c.Sequence, err = number(value, math.MaxInt64)
			case "tags":
				c.Tags, err = r.tags(value)
			default:
				err = r.keyField(&c.Key, name, value)
			}
			return err
		})
	return c, err
}

// KeyValue reads an entry of Hudi's view.
func (r *Reader) KeyValue() (kv hfile.KeyValue, err error) {
	err = r.object([]string{"key", "value"}, nil, func(name string, value []byte) (err error) {
		if name == "key" {
			kv.Key, err = r.row(value)
		} else {
			kv.Value, err = r.bytes(value)
		}
		return err
	})
	return kv, err
}

// Key reads a key to seek in Hudi's view, or to probe.
func (r *Reader) Key() (key []byte, err error) {
	err = r.object([]string{"key"}, nil, func(_ string, value []byte) (err error) {
		key, err = r.row(value)
		return err
	})
	return key, err
}

// SeekKey reads a key to seek in HBase's view. Without timestamp and type it is the first possible
// key of the row, or of the column.
func (r *Reader) SeekKey() (k hfile.Key, err error) {
	k = hfile.FirstOnRow(nil)
	err = r.object([]string{"row"}, []string{"family", "qualifier", "ts", "type"},
		func(name string, value []byte) error {
			return r.keyField(&k, name, value)
		})
	return k, err
}

// Column reads a key to probe in HBase's view. The qualifier is nil if the line has none.
func (r *Reader) Column() (row, qualifier []byte, err error) {
	err = r.object([]string{"row"}, []string{"qualifier"}, func(name string, value []byte) (err error) {
		if name == "row" {
			row, err = r.row(value)
		} else {
			qualifier, err = r.bytes(value)
		}
		return err
	})
	return row, qualifier, err
}

// object reads the next line and passes its fields to use.
func (r *Reader) object(required, optional []string, use func(name string, value []byte) error) error {
	text, err := r.records.Next()
	if err != nil {
		return err
	}
	if text[0] != '{' {
		return fmt.Errorf("want an object, not %s", jsonin.Kind(text))
	}
	r.arena = r.arena[:0]
	found := 0
	for w := jsonin.Walk(text); w.Next(); {
		name := string(w.Name)
		switch {
		case slices.Contains(required, name):
			found++ // the checker refuses a second one
		case !slices.Contains(optional, name):
			return fmt.Errorf("unknown field %q", name)
		}
		if err := use(name, w.Value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if found == len(required) {
		return nil
	}
	return missing(text, required)
}

// missing returns the error for the first required name that an object lacks.
func missing(text []byte, required []string) error {
	for _, name := range required {
		has := false
		for w := jsonin.Walk(text); w.Next(); {
			has = has || string(w.Name) == name
		}
		if !has {
			return fmt.Errorf("%q is missing", name)
		}
	}
	return nil
}

func (r *Reader) keyField(k *hfile.Key, name string, value []byte) (err error) {
	switch name {
	case "row":
		k.Row, err = r.row(value)
	case "family":
		if k.Family, err = r.bytes(value); len(k.Family) > hfile.MaxFamilyBytes {
			err = fmt.Errorf("%d bytes, at most %d are allowed", len(k.Family), hfile.MaxFamilyBytes)
		}
	case "qualifier":
		k.Qualifier, err = r.bytes(value)
	case "ts":
		k.Timestamp, err = strconv.ParseInt(string(value), 10, 64) // a key to seek may be before the first time
		if err != nil {
			err = fmt.Errorf("want an integer of 64 bits, not %.40s", value)
		}
	case "type":
		if value[0] != '"' {
			return fmt.Errorf("want a name, not %s", jsonin.Kind(value))
		}
		var ok bool
		if k.Type, ok = parseType(string(jsonin.String(value))); !ok {
			err = fmt.Errorf("unknown type %.40s", value)
		}
	}
	return err
}

// row parses a byte string that is the row of a key.
func (r *Reader) row(value []byte) ([]byte, error) {
	row, err := r.bytes(value)
	if len(row) > hfile.MaxRowBytes {
		err = fmt.Errorf("%d bytes, at most %d are allowed", len(row), hfile.MaxRowBytes)
	}
	return row, err
}

// bytes parses a byte string into the arena.
func (r *Reader) bytes(value []byte) ([]byte, error) {
	if value[0] != '"' {
		return nil, fmt.Errorf("want a string, not %s", jsonin.Kind(value))
	}
	text := jsonin.String(value)
	from := len(r.arena)
	if !isHex(text) {
		r.arena = append(r.arena, text...)
	} else {
		arena, err := celltext.FromHex(r.arena, string(text))
		if err != nil {
			return nil, err
		}
		r.arena = arena
	}
	return r.arena[from:len(r.arena):len(r.arena)], nil
}

// tags parses a list of tags into the arena.
func (r *Reader) tags(value []byte) ([]byte, error) {
	if value[0] != '[' {
		return nil, fmt.Errorf("want an array, not %s", jsonin.Kind(value))
	}
	var tags []byte
	for w := jsonin.Walk(value); w.Next(); {
		if w.Value[0] != '{' {
			return nil, fmt.Errorf("want objects, not %s", jsonin.Kind(w.Value))
		}
		tag, err := r.tag(w.Value)
		if err != nil {
			return nil, err
		}
		tags = hfile.AppendTag(tags, tag)
	}
	return tags, nil
}

// maxTagBytes bounds a tag's value: its length plus one, for the type, is stored in 16 bits.
const maxTagBytes = math.MaxUint16 - 1

func (r *Reader) tag(object []byte) (tag hfile.Tag, err error) {
	found := 0
	for w := jsonin.Walk(object); w.Next(); {
		switch string(w.Name) {
		case "type":
			var n int64
			if n, err = number(w.Value, math.MaxUint8); err == nil {
				tag.Type = uint8(n)
			}
		case "value":
			if tag.Value, err = r.bytes(w.Value); len(tag.Value) > maxTagBytes {
				err = fmt.Errorf("%d bytes, at most %d are allowed", len(tag.Value), maxTagBytes)
			}
		default:
			return tag, fmt.Errorf("unknown field %q", w.Name)
		}
		if err != nil {
			return tag, fmt.Errorf("%s: %w", w.Name, err)
		}
		found++
	}
	if found != 2 {
		return tag, errors.New(`a tag needs "type" and "value"`)
	}
	return tag, nil
}

// number parses a whole number from 0 to most.
func number(value []byte, most int64) (int64, error) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("want a whole number from 0 to %d, not %.40s", most, value)
	}
	return n, nil
}
