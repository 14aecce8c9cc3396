package carbondata

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// filterCell returns v as a cell of type t, the type of column c in a table. If v is an integer out
// of the range of t, it returns −1 (below) or 1 (above) instead.
func filterCell(c *Column, t schema.Type, v any) (cell []byte, out int, err error) {
	switch {
	case t.Variable():
		cell = textCell(c.Type, v)
	case t == schema.Bool:
		if b, ok := v.(bool); ok {
			cell = []byte{0}
			if b {
				cell[0] = 1
			}
		}
	case t == schema.Float || t == schema.Double:
		cell, err = floatCell(t, v)
	default:
		if n, ok := integerOf(c.Type, v); ok {
			cell, out = integerCell(t, n)
			return cell, out, nil
		}
	}
	if err == nil && cell == nil {
		if text, ok := v.(jsonText); ok {
			v = strconv.Quote(string(text))
		}
		err = fmt.Errorf("%.40v (%s) is not a value of a column of type %s: %w", v, kindName(v),
			c.TypeName(), fault.ErrSchema)
	}
	return cell, 0, err
}

// kindName returns the type of a value for a message.
func kindName(v any) string {
	switch v.(type) {
	case json.Number:
		return "a number"
	case string, jsonText:
		return "a string"
	case nil:
		return "NULL; use IsNull"
	}
	return fmt.Sprintf("%T", v)
}

// textCell returns the bytes of a string, or nil.
func textCell(typ Type, v any) []byte {
	switch v := v.(type) {
	case []byte:
		return append([]byte{}, v...)
	case string:
		return append([]byte{}, v...)
	case jsonText:
		if typ != Binary {
			return append([]byte{}, v...)
		}
		digits, ok := strings.CutPrefix(string(v), "0x")
		if b, err := hex.DecodeString(digits); ok && err == nil {
			return append([]byte{}, b...)
		}
	}
	return nil
}

// floatCell returns a cell of a FLOAT or DOUBLE, or nil.
func floatCell(t schema.Type, v any) ([]byte, error) {
	var x float64
	bits := 8 * t.Width()
	switch v := v.(type) {
	case float64:
		x = v
	case float32:
		x = float64(v)
	case json.Number:
		var err error
		if x, err = strconv.ParseFloat(string(v), bits); err != nil {
			return nil, fmt.Errorf("%.40s is out of the range of %s: %w", v, t, fault.ErrSchema)
		}
	case jsonText:
		switch v {
		case "NaN":
			x = math.NaN()
		case "+Inf":
			x = math.Inf(1)
		case "-Inf":
			x = math.Inf(-1)
		default:
			return nil, nil
		}
	default:
		n, ok := integerOf(Long, v)
		if !ok || n != batch.Int128Of(int64(n.Lo)) {
			return nil, nil
		}
		x = float64(int64(n.Lo))
	}
	if bits == 64 {
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)), nil
	}
	if math.IsInf(float64(float32(x)), 0) && !math.IsInf(x, 0) {
		return nil, fmt.Errorf("%v is out of the range of %s: %w", x, t, fault.ErrSchema)
	}
	return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(x))), nil
}

// integerOf returns the integer that v is in a column of type typ. Those out of the range of 128
// bits become the least or the greatest one.
func integerOf(typ Type, v any) (n batch.Int128, ok bool) {
	switch v := v.(type) {
	case batch.Int128:
		return v, typ == Decimal
	case Days:
		return batch.Int128Of(int64(v)), typ == Date
	case Micros:
		return batch.Int128Of(int64(v)), typ == Timestamp
	case json.Number:
		return parseInteger(string(v))
	}
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return batch.Int128Of(r.Int()), true
	case r.CanUint():
		return batch.Int128{Lo: r.Uint()}, true
	}
	return n, false
}

// parseInteger returns the integer of a JSON number.
func parseInteger(s string) (n batch.Int128, ok bool) {
	const most = 1000 // digits
	b, ok := new(big.Int), len(s) <= most
	if ok {
		b, ok = b.SetString(s, 10)
	}
	if !ok {
		return n, false
	}
	if b.BitLen() > 127 {
		n = batch.Int128{Lo: math.MaxUint64, Hi: math.MaxInt64}
		if b.Sign() < 0 {
			n = batch.Int128{Hi: math.MinInt64}
		}
		return n, true
	}
	var bytes [16]byte
	v := int128(new(big.Int).Abs(b).FillBytes(bytes[:]))
	n = batch.Int128(v)
	if b.Sign() < 0 {
		n = n.Neg()
	}
	return n, true
}

// integerCell returns the cell of an integer, or −1 or 1 for an integer below or above the type's
// range.
func integerCell(t schema.Type, n batch.Int128) (cell []byte, out int) {
	w := t.Width()
	if w <= 8 {
		end := batch.Int128{Lo: 1 << (8*w - 1)} // the range is [−end, end)
		switch {
		case n.Cmp(end) >= 0:
			return nil, 1
		case n.Cmp(end.Neg()) < 0:
			return nil, -1
		}
	}
	cell = binary.LittleEndian.AppendUint64(nil, n.Lo)
	cell = binary.LittleEndian.AppendUint64(cell, uint64(n.Hi))
	return cell[:w], 0
}
