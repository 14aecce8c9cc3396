package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/oribi-db/oribi/bench/inputs"
)

// kv is an ordered key-value store.
type kv interface {
	// put writes pairs in one batch.
	put(keys, values [][]byte) error
	// get calls use with the value of a key; use must not keep the value.
	get(key []byte, use func(value []byte) error) (found bool, err error)
	// scan calls use with each pair from a key on (nil = the first) until use returns false, which
	// it does at the latest after most pairs, if most is not 0. use must not keep the pairs.
	scan(from []byte, most int, use func(key, value []byte) (bool, error)) error
	// finishWork completes the background work of the store.
	finishWork() error
	Close() error
}

// kvLineitem is lineitem in a key-value store.
type kvLineitem struct {
	kv
	keys, values [][]byte
	buf          []byte
	decoder      inputs.Decoder
}

func newKVLineitem(store kv, err error) (Lineitem, error) {
	if err != nil {
		return nil, err
	}
	return &kvLineitem{kv: store}, nil
}

func (l *kvLineitem) Load(rows iter.Seq2[*inputs.Item, error], _ bool) error {
	return EachChunk(rows, Chunk, l.Upsert)
}

func (l *kvLineitem) Upsert(items []inputs.Item) error {
	l.keys, l.values, l.buf = l.keys[:0], l.values[:0], l.buf[:0]
	var ends []int
	for i := range items {
		l.buf = items[i].AppendKey(l.buf)
		ends = append(ends, len(l.buf))
		l.buf = items[i].AppendValue(l.buf)
		ends = append(ends, len(l.buf))
	}
	start := 0
	for i := 0; i < len(ends); i += 2 {
		l.keys, l.values = append(l.keys, l.buf[start:ends[i]]), append(l.values, l.buf[ends[i]:ends[i+1]])
		start = ends[i+1]
	}
	return l.put(l.keys, l.values)
}

var errMissing = errors.New("a row is missing")

func (l *kvLineitem) UpdateTax(keys []inputs.Key, tax int64) error {
	l.keys, l.values = l.keys[:0], l.values[:0]
	for _, k := range keys {
		key := k.Append(nil)
		var changed []byte
		if _, err := l.get(key, func(value []byte) error { changed = bytes.Clone(value); return nil }); err != nil {
			return err
		}
		if len(changed) < inputs.ShipDateAt {
			return fmt.Errorf("update of %v: %w", k, errMissing)
		}
		binary.LittleEndian.PutUint64(changed[inputs.TaxAt:], uint64(tax))
		l.keys, l.values = append(l.keys, key), append(l.values, changed)
	}
	return l.put(l.keys, l.values)
}

func (l *kvLineitem) Get(key inputs.Key, it *inputs.Item) (bool, error) {
	l.buf = key.Append(l.buf[:0])
	return l.get(l.buf, func(value []byte) error { return l.decoder.Item(l.buf, value, it) })
}

// GetMany gets the keys one by one: none of these stores can get several at once.
func (l *kvLineitem) GetMany(keys []inputs.Key, use func(it *inputs.Item)) error {
	var it inputs.Item
	for _, k := range keys {
		found, err := l.Get(k, &it)
		if err != nil {
			return err
		}
		if found {
			use(&it)
		}
	}
	return nil
}

func (l *kvLineitem) Range(from inputs.Key, n int, use func(it *inputs.Item)) error {
	var it inputs.Item
	l.buf = from.Append(l.buf[:0])
	return l.scan(l.buf, n, func(key, value []byte) (bool, error) {
		if err := l.decoder.Item(key, value, &it); err != nil {
			return false, err
		}
		use(&it)
		n--
		return n > 0, nil
	})
}

// Query reads all values and decodes the fields that the query needs.
func (l *kvLineitem) Query(q Question) (*Answer, error) {
	a := &Answer{}
	var it inputs.Item
	var texts [5][]byte
	needTexts := q == Group || q == Q1
	err := l.scan(nil, 0, func(_, value []byte) (bool, error) {
		if len(value) < inputs.ShipDateAt+4 {
			return false, errMissing
		}
		field := func(at int) int64 { return int64(binary.LittleEndian.Uint64(value[at:])) }
		it.PartKey, it.Quantity, it.ExtendedPrice = field(inputs.PartKeyAt),
			field(inputs.QuantityAt), field(inputs.ExtendedPriceAt)
		it.Discount, it.Tax, it.ShipDate = field(inputs.DiscountAt), field(inputs.TaxAt),
			int32(binary.LittleEndian.Uint32(value[inputs.ShipDateAt:]))
		if needTexts {
			if err := inputs.Texts(value, &texts); err != nil {
				return false, err
			}
			it.ReturnFlag, it.LineStatus, it.ShipMode = l.decoder.Word(texts[0]),
				l.decoder.Word(texts[1]), l.decoder.Word(texts[3])
		}
		a.AddItem(q, &it)
		return true, nil
	})
	return a, err
}

func (l *kvLineitem) FinishWork() error { return l.finishWork() }

// kvRecords are records in a key-value store.
type kvRecords struct {
	kv
}

func newKVRecords(store kv, err error) (Records, error) {
	if err != nil {
		return nil, err
	}
	return &kvRecords{kv: store}, nil
}

func (r *kvRecords) Put(keys, values [][]byte) error { return r.put(keys, values) }

func (r *kvRecords) Read(key []byte) (out []byte, err error) {
	_, err = r.get(key, func(value []byte) error { out = bytes.Clone(value); return nil })
	return out, err
}

func (r *kvRecords) Update(key []byte, field int, value []byte) error {
	record, err := r.Read(key)
	if err != nil {
		return err
	}
	if len(record) != Fields*FieldBytes {
		return fmt.Errorf("update of %q: %w", key, errMissing)
	}
	copy(record[field*FieldBytes:], value)
	return r.put([][]byte{key}, [][]byte{record})
}

func (r *kvRecords) Scan(from []byte, n int, use func(key, value []byte)) error {
	return r.scan(from, n, func(key, value []byte) (bool, error) {
		use(key, value)
		n--
		return n > 0, nil
	})
}

func (r *kvRecords) FinishWork() error { return r.finishWork() }
