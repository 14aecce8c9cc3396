package inputs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/oribi-db/oribi/batch"
)

// The rows of a workload are stored in a binary file, since parsing text would take longer than
// some peers' own work:
//
//	4 bytes   length of the key, little-endian
//	4 bytes   length of the value
//	          key in the form of Item.AppendKey, value in the form of Item.AppendValue
//
// The file repeats the rows of lineitem; the order keys of each repetition are above the keys of
// the repetition before.

// AppendKey appends the key of a row for a key-value store. It sorts as (orderkey, linenumber)
// does.
func (it *Item) AppendKey(dst []byte) []byte { return Key{it.OrderKey, it.LineNumber}.Append(dst) }

// Key is the primary key of a row.
type Key struct {
	OrderKey   int64
	LineNumber int32
}

// Key returns the primary key of the row.
func (it *Item) Key() Key { return Key{it.OrderKey, it.LineNumber} }

// Append is Item.AppendKey.
func (k Key) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(k.OrderKey))
	return binary.BigEndian.AppendUint32(dst, uint32(k.LineNumber))
}

// Offsets of the fixed-width fields in a value: six of 8 bytes, then three of 4. Strings with their
// lengths follow.
const (
	PartKeyAt = 8 * iota
	SuppKeyAt
	QuantityAt
	ExtendedPriceAt
	DiscountAt
	TaxAt
	ShipDateAt
	textsAt = ShipDateAt + 3*4
)

// AppendValue appends the value of a row for a key-value store: fixed-width fields in little-endian
// order, then strings, each after its length.
func (it *Item) AppendValue(dst []byte) []byte {
	for _, v := range [...]int64{it.PartKey, it.SuppKey, it.Quantity, it.ExtendedPrice, it.Discount, it.Tax} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	for _, v := range [...]int32{it.ShipDate, it.CommitDate, it.ReceiptDate} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	for _, s := range [...]string{it.ReturnFlag, it.LineStatus, it.ShipInstruct, it.ShipMode, it.Comment} {
		dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...)
	}
	return dst
}

// Decoder decodes rows of key-value stores and of batches. It interns strings that occur often. Its
// zero value is ready for use.
type Decoder struct {
	words        map[string]string
	dictionaries map[*batch.Dictionary][]string // their words, interned
}

var errShort = errors.New("a row is truncated")

// Item decodes a row encoded by AppendKey and AppendValue.
func (d *Decoder) Item(key, value []byte, it *Item) error {
	if len(key) != 12 || len(value) < textsAt {
		return errShort
	}
	it.OrderKey, it.LineNumber = int64(binary.BigEndian.Uint64(key)), int32(binary.BigEndian.Uint32(key[8:]))
	for i, p := range [...]*int64{&it.PartKey, &it.SuppKey, &it.Quantity, &it.ExtendedPrice, &it.Discount, &it.Tax} {
		*p = int64(binary.LittleEndian.Uint64(value[8*i:]))
	}
	for i, p := range [...]*int32{&it.ShipDate, &it.CommitDate, &it.ReceiptDate} {
		*p = int32(binary.LittleEndian.Uint32(value[ShipDateAt+4*i:]))
	}
	texts := [...][]byte{nil, nil, nil, nil, nil}
	if err := Texts(value, &texts); err != nil {
		return err
	}
	for i, p := range [...]*string{&it.ReturnFlag, &it.LineStatus, &it.ShipInstruct, &it.ShipMode} {
		*p = d.Word(texts[i])
	}
	it.Comment = string(texts[4])
	return nil
}

// Texts returns the five strings of a value: return flag, line status, ship instruction, ship mode,
// comment.
func Texts(value []byte, texts *[5][]byte) error {
	rest := value[textsAt:]
	for i := range texts {
		n, used := binary.Uvarint(rest)
		if used <= 0 || n > uint64(len(rest)-used) {
			return errShort
		}
		texts[i], rest = rest[used:used+int(n)], rest[used+int(n):]
	}
	return nil
}

// Word returns b as a string. It interns the string, so there should be few different ones.
func (d *Decoder) Word(b []byte) string {
	if w, ok := d.words[string(b)]; ok {
		return w
	}
	if d.words == nil {
		d.words = map[string]string{}
	}
	w := string(b)
	d.words[w] = w
	return w
}

// WriteRows writes a file of n rows in key order. It repeats the rows of a text file of lineitem.
func WriteRows(name, lineitem string, n int) error {
	return makeFile(name, func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 1<<20)
		var buf []byte
		move, last := int64(0), int64(0)
		for rows := 0; rows < n; {
			before := rows
			for it, err := range Items(lineitem) {
				if err != nil {
					return err
				}
				it.OrderKey += move
				last = it.OrderKey
				buf = appendRecord(buf[:0], it)
				out.Write(buf)
				if rows++; rows == n {
					break
				}
			}
			if rows == before {
				return errors.New("lineitem is empty")
			}
			move = last
		}
		return out.Flush()
	})
}

func appendRecord(dst []byte, it *Item) []byte {
	start := len(dst)
	dst = it.AppendKey(append(dst, make([]byte, 8)...))
	keyEnd := len(dst)
	dst = it.AppendValue(dst)
	binary.LittleEndian.PutUint32(dst[start:], uint32(keyEnd-start-8))
	binary.LittleEndian.PutUint32(dst[start+4:], uint32(len(dst)-keyEnd))
	return dst
}

// maxRecord bounds a row of the file, in bytes.
const maxRecord = 1 << 20

// records reads a file of rows without decoding them. A record is valid until the next one.
func records(name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(name)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		in := bufio.NewReaderSize(f, 1<<20)
		buf := make([]byte, 8, 1<<10)
		for {
			if _, err := io.ReadFull(in, buf[:8]); err == io.EOF {
				return
			} else if err != nil {
				yield(nil, fmt.Errorf("%s: %w", name, err))
				return
			}
			n := uint64(binary.LittleEndian.Uint32(buf)) + uint64(binary.LittleEndian.Uint32(buf[4:]))
			if n > maxRecord {
				yield(nil, fmt.Errorf("%s: a row of %d bytes", name, n))
				return
			}
			if uint64(cap(buf)) < 8+n {
				buf = append(make([]byte, 0, 8+n), buf[:8]...)
			}
			buf = buf[:8+n]
			if _, err := io.ReadFull(in, buf[8:]); err != nil {
				yield(nil, fmt.Errorf("%s: %w", name, err))
				return
			}
			if !yield(buf, nil) {
				return
			}
			buf = buf[:8]
		}
	}
}

// Rows reads a file made by WriteRows or Shuffle. A row is valid until the next one.
func Rows(name string) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		var d Decoder
		var it Item
		for r, err := range records(name) {
			if err == nil {
				k := int(binary.LittleEndian.Uint32(r))
				if k > len(r)-8 {
					err = errShort
				} else {
					err = d.Item(r[8:8+k], r[8+k:], &it)
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&it, nil) {
				return
			}
		}
	}
}

// shufflePart is the approximate number of bytes that are shuffled in memory at once.
const shufflePart = 64 << 20

// Shuffle writes the rows of a file to another one in random order, which is the same in each run:
// it distributes the rows among parts at random, and shuffles each part in memory.
func Shuffle(name, rows string) error {
	return makeFile(name, func(w io.Writer) error {
		info, err := os.Stat(rows)
		if err != nil {
			return err
		}
		r := rand.New(rand.NewPCG(3, 4))
		parts := int(info.Size()/shufflePart) + 1
		files, outs := make([]*os.File, parts), make([]*bufio.Writer, parts)
		for i := range files {
			if files[i], err = os.CreateTemp(filepath.Dir(name), "shuffle-"); err != nil {
				return err
			}
			defer os.Remove(files[i].Name())
			defer files[i].Close()
			outs[i] = bufio.NewWriterSize(files[i], 64<<10)
		}
		for record, err := range records(rows) {
			if err != nil {
				return err
			}
			if _, err := outs[r.IntN(parts)].Write(record); err != nil {
				return err
			}
		}
		out := bufio.NewWriterSize(w, 1<<20)
		for i := range files {
			if err := outs[i].Flush(); err != nil {
				return err
			}
			if err := shuffleOne(out, files[i].Name(), r); err != nil {
				return err
			}
		}
		return out.Flush()
	})
}

func shuffleOne(out *bufio.Writer, name string, r *rand.Rand) error {
	var all []byte
	ends := []int{0}
	for record, err := range records(name) {
		if err != nil {
			return err
		}
		all = append(all, record...)
		ends = append(ends, len(all))
	}
	for _, i := range r.Perm(len(ends) - 1) {
		if _, err := out.Write(all[ends[i]:ends[i+1]]); err != nil {
			return err
		}
	}
	return nil
}
