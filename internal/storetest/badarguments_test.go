package storetest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Every public call with an argument that makes no sense returns an error, or does what its doc
// comment says. No call panics or hangs.
func TestBadArgumentsDoNotPanic(t *testing.T) {
	store, table, typed := openNumbers(t, vfs.NewMem(), false)
	scratch := numbersTable(t, store, "scratch") // for calls that change rows or the schema
	ctx := t.Context()
	must.Do(t, table.Flush(ctx))
	commit := func(fill func(b *oribi.Batch)) func() error {
		return func() error {
			b := store.NewBatch()
			fill(b)
			return must.Err(b.Commit(ctx))
		}
	}
	scan := func(opts ...oribi.ScanOption) func() error {
		return func() error { return lastErr(table.Scan(ctx, opts...).Rows()) }
	}
	where := func(p oribi.Predicate) func() error {
		return func() error { return must.Err(table.Count(ctx, oribi.Where(p))) }
	}
	get := func(key any, opts ...oribi.GetOption) func() error {
		return func() error { return must.Err(table.Get(ctx, key, opts...)) }
	}
	sum := func(a oribi.Aggregate, opts ...oribi.AggregateOption) func() error {
		return func() error { return must.Err(table.Aggregate(ctx, []oribi.Aggregate{a}, opts...)) }
	}
	times := func(v any) oribi.Aggregate { return oribi.SumOfProduct(oribi.Col("v").Times(v)) }
	create := func(s *schema.Schema, opts ...oribi.TableOption) func() error {
		return func() error { return must.Err(store.CreateTable(fmt.Sprint("bad", time.Now().UnixNano()), s, opts...)) }
	}
	alter := func(changes ...oribi.Alteration) func() error {
		return func() error { return scratch.Alter(ctx, changes...) }
	}
	decimals := tableOf(t, store, "decimals", "k*:int64 d:decimal(18,2)?")
	decimal := func(d oribi.Decimal) func() error {
		return commit(func(b *oribi.Batch) { b.Upsert(decimals, oribi.Row{"k": 1, "d": d}) })
	}
	type nothing struct{}
	closed := must.Get(store.Snapshot(ctx))(t)
	closed.Close()
	for name, c := range map[string]struct {
		fails bool
		call  func() error
	}{
		"Get nil":           {true, get(nil)},
		"Get Key{}":         {true, get(oribi.Key{})},
		"Get nil Key":       {true, get(oribi.Key(nil))},
		"Get Row{}":         {true, get(oribi.Row{})},
		"Get no cells":      {true, get([][]byte{})},
		"Get a nil cell":    {true, get([][]byte{nil})},
		"Get a short cell":  {true, get([][]byte{{1}})},
		"Get a long key":    {true, get(oribi.Key{1, 2, 3})},
		"Get a nil pointer": {true, get((*int)(nil))},
		"Get a func":        {true, get(func() {})},
		"Get a chan":        {true, get(make(chan int))},
		"Get NaN":           {true, get(math.NaN())},
		"Get a Decimal":     {true, get(oribi.Decimal{})},
		"Get nil option":    {false, get(1, nil)},
		"Get At(nil)":       {true, get(1, oribi.At(nil))},
		"Get At closed":     {true, get(1, oribi.At(closed))},
		"Get AsOf Max":      {true, get(1, oribi.AsOf(mvcc.Max))},
		"Get AsOf 0":        {true, get(1, oribi.AsOf(0))},
		"Get Columns()":     {false, get(1, oribi.Columns())},
		"Get Columns empty": {true, get(1, oribi.Columns(""))},
		"Get Columns twice": {true, get(1, oribi.Columns("v", "v"))},
		"GetCells Columns twice": {true, func() error {
			_, _, err := table.GetCells(ctx, 1, oribi.Columns("v", "v"))
			return err
		}},
		"GetMany nil":          {false, func() error { return must.Err(table.GetMany(ctx, nil)) }},
		"GetMany of nil":       {true, func() error { return must.Err(table.GetMany(ctx, []any{nil})) }},
		"typed GetMany of nil": {true, func() error { return must.Err(typed.GetMany(ctx, []any{nil})) }},
		"Explain nil":          {true, func() error { return must.Err(table.Explain(ctx, nil)) }},
		"History nil":          {true, func() error { return lastErr(table.History(ctx, nil)) }},
		"Diff from 0 to Max":   {true, func() error { return lastErr(table.Diff(ctx, 0, mvcc.Max)) }},
		"Diff Columns twice": {true, func() error {
			return lastErr(table.Diff(ctx, mvcc.First, store.Visible(), oribi.Columns("v", "v")))
		}},
		"Scan nil option":          {false, scan(nil)},
		"Scan Limit MaxInt64":      {false, scan(oribi.Limit(math.MaxInt64))},
		"Scan Limit MinInt64":      {false, scan(oribi.Limit(math.MinInt64))},
		"Scan from above to":       {false, scan(oribi.From(5), oribi.To(1))},
		"Scan Prefix of a number":  {false, scan(oribi.Prefix(1))},
		"Scan From Key{}":          {true, scan(oribi.From(oribi.Key{}))},
		"Scan From a long key":     {true, scan(oribi.From(oribi.Key{1, 2}))},
		"Scan From nil":            {false, scan(oribi.From(nil), oribi.To(nil), oribi.Prefix(nil))},
		"Where nothing":            {false, scan(oribi.Where())},
		"Where zero":               {false, where(oribi.Predicate{})},
		"Where Not zero":           {false, where(oribi.Not(oribi.Predicate{}))},
		"Where And, Or of nothing": {false, where(oribi.And(oribi.Or(), oribi.And()))},
		"Where Eq nil":             {true, where(oribi.Eq("v", nil))},
		"Where Eq a nil pointer":   {true, where(oribi.Eq("v", (*int)(nil)))},
		"Where Eq a map":           {true, where(oribi.Eq("v", map[string]int{}))},
		"Where In nothing":         {false, where(oribi.In[int]("v"))},
		"Where In nil":             {true, where(oribi.In[any]("v", nil))},
		"Where no column":          {true, where(oribi.Eq("", 1))},
		"Where prefix of a number": {true, where(oribi.HasPrefix("v", "x"))},
		"Where prefix nil":         {true, where(oribi.HasPrefix("v", nil))},
		"Where Between nil":        {true, where(oribi.Between("v", nil, nil))},
		"Where Between reversed":   {false, where(oribi.Between("v", 2, 1))},
		"Where InBloom nil":        {true, where(oribi.InBloom("v", nil))},
		"Where InBloom zero":       {true, where(oribi.InBloom("v", &bloom.BloomFilter{}))},
		"Where Cell short":         {true, where(oribi.Eq("v", oribi.Cell{1}))},
		"Aggregate nothing":        {false, func() error { return must.Err(table.Aggregate(ctx, nil, nil)) }},
		"Aggregate zero":           {true, sum(oribi.Aggregate{})},
		"Aggregate no terms":       {true, sum(oribi.SumOfProduct())},
		"Aggregate a zero term":    {true, sum(oribi.SumOfProduct(oribi.Term{}))},
		"Aggregate no column":      {true, sum(oribi.SumOf(""))},
		"Aggregate times nil":      {true, sum(times(nil))},
		"Aggregate times NaN":      {true, sum(times(math.NaN()))},
		"Aggregate times 1e300":    {true, sum(times(1e300))},
		"Aggregate times 1e-300":   {true, sum(times(1e-300))},
		"Aggregate a huge scale":   {true, sum(times(oribi.NewDecimal(1, math.MaxInt)))},
		"Aggregate a low scale":    {true, sum(times(oribi.NewDecimal(1, math.MinInt)))},
		"Aggregate huge scales": {true,
			sum(oribi.SumOfProduct(oribi.Col("v").Plus(oribi.NewDecimal(1,
				math.MaxInt)).Times(oribi.NewDecimal(1, math.MaxInt))))},
		"GroupBy no name":  {true, sum(oribi.CountRows(), oribi.GroupBy(""))},
		"GroupBy nothing":  {false, sum(oribi.CountRows(), oribi.GroupBy())},
		"GroupBy twice":    {true, sum(oribi.CountRows(), oribi.GroupBy("k"), oribi.GroupBy("k"))},
		"Insert nil table": {true, commit(func(b *oribi.Batch) { b.Insert(nil, oribi.Row{"k": 9, "v": 1}) })},
		"Insert nil row":   {true, commit(func(b *oribi.Batch) { b.Insert(table, nil) })},
		"Insert unknown op": {true, commit(func(b *oribi.Batch) {
			b.Row(99, table, oribi.Row{"k": 9, "v": 1})
		})},
		"Insert op 0": {true, commit(func(b *oribi.Batch) {
			b.Row(0, table, oribi.Row{"k": 9, "v": 1})
		})},
		"Insert a func": {true, commit(func(b *oribi.Batch) {
			b.Insert(table, oribi.Row{"k": 9, "v": func() {}})
		})},
		"Cells nil": {true, commit(func(b *oribi.Batch) { b.Cells(oribi.OpInsert, table, nil, nil) })},
		"Cells short": {true, commit(func(b *oribi.Batch) {
			b.Cells(oribi.OpInsert, table, [][]byte{{1}, {2}}, nil)
		})},
		"Cells set is short": {true, commit(func(b *oribi.Batch) {
			b.Cells(oribi.OpInsert, table, make([][]byte, 2), []bool{true})
		})},
		"Cells op 0":  {true, commit(func(b *oribi.Batch) { b.Cells(0, table, make([][]byte, 2), nil) })},
		"Vectors nil": {true, commit(func(b *oribi.Batch) { b.Vectors(oribi.OpInsert, table, nil) })},
		"Vectors of nil": {true, commit(func(b *oribi.Batch) {
			b.Vectors(oribi.OpInsert, table, make([]*batch.Vector, 2))
		})},
		"Vectors zero": {true, commit(func(b *oribi.Batch) {
			b.Vectors(oribi.OpInsert, table, []*batch.Vector{{}, {}})
		})},
		"If nil table":           {true, commit(func(b *oribi.Batch) { b.If(nil, nil) })},
		"If nil key":             {true, commit(func(b *oribi.Batch) { b.If(table, nil) })},
		"IfAbsent nil key":       {true, commit(func(b *oribi.Batch) { b.IfAbsent(table, nil) })},
		"UpdateIf nil":           {true, commit(func(b *oribi.Batch) { b.UpdateIf(table, nil) })},
		"typed add op 0":         {true, commit(func(b *oribi.Batch) { typed.InBatch(b).Add(0, numberRow{}) })},
		"typed Put nothing":      {false, func() error { return must.Err(typed.Put(ctx)) }},
		"Commit nil option":      {false, func() error { return must.Err(store.NewBatch().Commit(ctx, nil)) }},
		"Commit of a zero batch": {true, func() error { return must.Err(new(oribi.Batch).Commit(ctx)) }},
		"Insert into a zero batch": {true, func() error {
			b := new(oribi.Batch)
			b.Insert(table, oribi.Row{"k": 9, "v": 1})
			return b.Err()
		}},
		"Get of a zero batch":       {true, func() error { return must.Err(new(oribi.Batch).Get(ctx, table, 1)) }},
		"Batch.Get nil table":       {true, func() error { return must.Err(store.NewBatch().Get(ctx, nil, 1)) }},
		"Batch.Schema nil table":    {false, func() error { store.NewBatch().Schema(nil); return nil }},
		"Decimal 0 of a huge scale": {false, decimal(oribi.Decimal{Scale: math.MaxInt})},
		"Decimal 0 of a low scale":  {false, decimal(oribi.Decimal{Scale: math.MinInt})},
		"Decimal of a huge scale":   {true, decimal(oribi.NewDecimal(1, math.MaxInt))},
		"Decimal of a low scale":    {true, decimal(oribi.NewDecimal(1, math.MinInt))},
		"Decimal out of range":      {true, decimal(oribi.NewDecimal(math.MaxInt64, -2))},
		"Ingest nil":                {true, func() error { _, _, err := scratch.Ingest(ctx, nil); return err }},
		"Ingest nil vectors": {true, func() error {
			_, _, err := scratch.Ingest(ctx, func(yield func([]*batch.Vector, error) bool) { yield(nil, nil) })
			return err
		}},
		"typed Ingest nil":   {true, func() error { _, _, err := typed.Ingest(ctx, nil); return err }},
		"Typed nil":          {true, func() error { return must.Err(oribi.Typed[numberRow](nil)) }},
		"Typed of nothing":   {true, func() error { return must.Err(oribi.Typed[nothing](table)) }},
		"Typed of any":       {true, func() error { return must.Err(oribi.Typed[any](table)) }},
		"Typed of a pointer": {true, func() error { return must.Err(oribi.Typed[*numberRow](table)) }},
		"Typed of a time":    {true, func() error { return must.Err(oribi.Typed[time.Time](table)) }},
		"GetAs nil table":    {true, func() error { return must.Err(oribi.GetAs[numberRow](ctx, nil, 1)) }},
		"ScanAs nil table":   {true, func() error { return lastErr(oribi.ScanAs[numberRow](ctx, nil)) }},
		"Patch nil table":    {true, func() error { return must.Err(oribi.Patch(ctx, nil, numberRow{})) }},
		"PatchIn nil table": {true, func() error {
			return oribi.PatchIn(store.NewBatch(), nil, numberRow{})
		}},
		"SchemaOf any":            {true, func() error { return must.Err(oribi.SchemaOf[any]()) }},
		"OpenTable no name":       {true, func() error { return must.Err(oribi.OpenTable[numberRow](store, "")) }},
		"Table no name":           {true, func() error { return must.Err(store.Table("")) }},
		"Table of a long name":    {true, func() error { return must.Err(store.Table(strings.Repeat("x", 1<<20))) }},
		"DropTable no name":       {true, func() error { return store.DropTable("") }},
		"CreateTable zero schema": {true, create(&schema.Schema{})},
		"CreateTable unknown type": {true,
			create(&schema.Schema{Columns: []schema.Column{{Name: "k", Type: 99, Default: []byte{1}}}, Keys: 1})},
		"CreateTable too many keys": {true,
			create(&schema.Schema{Columns: []schema.Column{{Name: "k", Type: schema.Int64}}, Keys: 7})},
		"CreateTable zero option":  {false, create(table.Schema(), oribi.TableOption{})},
		"CreateTable History 0":    {true, create(table.Schema(), oribi.History(0))},
		"CreateTable History -5":   {true, create(table.Schema(), oribi.History(-5))},
		"CreateTable long comment": {true, create(table.Schema(), oribi.Comment(strings.Repeat("x", 1000)))},
		"Alter nothing":            {false, alter()},
		"Alter nil":                {false, alter(nil)},
		"Alter zero column":        {true, alter(oribi.AddColumn(schema.Column{}))},
		"Alter unknown type": {true,
			alter(oribi.AddColumn(schema.Column{Name: "x", Type: 99, Nullable: true, Default: []byte{1}}))},
		"Alter to an unknown type":  {true, alter(oribi.SetType("v", schema.Column{Type: 99}))},
		"Alter to a decimal(40)":    {true, alter(oribi.SetType("v", schema.Column{Type: schema.Decimal64, Precision: 40}))},
		"Alter default of another":  {true, alter(oribi.SetDefault("v", "x"))},
		"Alter default cell":        {true, alter(oribi.SetDefaultCell("v", []byte{1}))},
		"Alter unknown encoding":    {true, alter(oribi.SetEncoding("v", 99))},
		"Alter unknown compression": {true, alter(oribi.SetCompression("v", -9))},
		"Alter block size":          {true, alter(oribi.SetBlockSize("v", -1))},
		"Alter rename to nothing":   {true, alter(oribi.RenameColumn("v", ""))},
		"Rename no name":            {true, func() error { return scratch.Rename(ctx, "") }},
		"Extract no name":           {true, func() error { return scratch.Extract(ctx, "") }},
		"Merge nothing":             {false, func() error { return scratch.Merge(ctx, compaction.Choice{}) }},
		"Merge unknown rowsets": {true, func() error {
			return scratch.Merge(ctx, compaction.Choice{RowSets: []uint64{998, 999}})
		}},
		"MergeBy nil": {true, func() error { return must.Err(scratch.MergeBy(ctx, nil, 1<<20)) }},
		"MergeBy nil pointer": {true, func() error {
			return must.Err(scratch.MergeBy(ctx, (*compaction.Budgeted)(nil), 1<<20))
		}},
		"MergeBy impossible": {true, func() error {
			return must.Err(scratch.MergeBy(ctx, compaction.Tiered{Runs: -1}, 1<<20))
		}},
		"MergeBy no budget": {false, func() error {
			return must.Err(scratch.MergeBy(ctx, compaction.Budgeted{}, -1))
		}},
		"CompactMajor no name": {true, func() error { return must.Err(scratch.CompactMajor(ctx, "")) }},
		"CompactMajor twice":   {false, func() error { return must.Err(scratch.CompactMajor(ctx, "v", "v")) }},
		"RestoreTo 0":          {false, func() error { return must.Err(scratch.RestoreTo(ctx, 0)) }},
		"RestoreTo Max":        {true, func() error { return must.Err(scratch.RestoreTo(ctx, mvcc.Max)) }},
		"UpdateWhere nil":      {true, func() error { return must.Err(scratch.UpdateWhere(ctx, nil)) }},
		"UpdateWhere key": {true, func() error {
			return must.Err(scratch.UpdateWhere(ctx, oribi.Row{"k": 1}))
		}},
		"UpdateWhere nil option": {false, func() error {
			return must.Err(scratch.UpdateWhere(ctx, oribi.Row{"v": 1}, nil))
		}},
		"DeleteRange reversed":        {false, func() error { return must.Err(scratch.DeleteRange(ctx, 5, 1)) }},
		"DeleteRange of another type": {true, func() error { return must.Err(scratch.DeleteRange(ctx, "x", nil)) }},
		"Truncate nil option":         {false, func() error { return must.Err(scratch.Truncate(ctx, nil)) }},
		"SnapshotAt Max":              {true, func() error { return must.Err(store.SnapshotAt(ctx, mvcc.Max)) }},
		"AdvanceClock Max":            {true, func() error { return store.AdvanceClock(mvcc.Max) }},
		"AdvanceClock 0":              {false, func() error { return store.AdvanceClock(0) }},
		"Verify nil report and progress": {false, func() error {
			return store.Verify(ctx, nil, nil, nil)
		}},
		"Open no name": {true, func() error { return must.Err(oribi.Open("", nil)) }},
		"Open policy nil pointer": {true, func() error {
			return must.Err(oribi.Open("/nil", &oribi.Options{FS: vfs.NewMem(), Policy: (*compaction.Tiered)(nil)}))
		}},
		"Open huge limits": {false, func() error {
			s, err := oribi.Open("/huge",
				&oribi.Options{FS: vfs.NewMem(), MemoryLimit: math.MaxInt64,
					FlushBytes: math.MaxInt64, RowSetBytes: math.MaxInt64})
			if err != nil {
				return err
			}
			big := numbersTable(t, s, "t")
			b := s.NewBatch()
			b.Insert(big, oribi.Row{"k": 1, "v": 1})
			if _, err = b.Commit(ctx); err == nil {
				err = big.Compact(ctx)
			}
			s.Close()
			return err
		}},
		"Open tiny limits": {false, func() error {
			s, err := oribi.Open("/tiny", &oribi.Options{FS: vfs.NewMem(), FlushBytes: 1, RowSetBytes: 1, CellLimit: 1})
			if err != nil {
				return err
			}
			small := numbersTable(t, s, "t")
			s.NewBatch().Insert(small, oribi.Row{"k": 1, "v": 1})
			s.Close()
			return nil
		}},
		"texts": {false, func() error {
			_ = fmt.Sprint(oribi.ChangeKind(99).String(), oribi.Op(99).String(),
				oribi.Decimal{Scale: math.MaxInt}.String(), oribi.Decimal{Scale: math.MinInt}.String(),
				oribi.Predicate{}.String(), oribi.InBloom("v", nil).String(), oribi.HasPrefix("", nil).String(),
				oribi.In[any]("x", nil, func() {}).String())
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v", p)
				}
			}()
			done := time.AfterFunc(time.Minute, func() { panic(name + " does not end") })
			defer done.Stop()
			if err := c.call(); (err != nil) != c.fails {
				t.Errorf("error %v, want one: %v", err, c.fails)
			}
		})
	}
	// The store works as before.
	must.Do(t, must.Err(typed.Put(ctx, numberRow{1, 1})))
	must.Do(t, store.Verify(ctx, func(f oribi.Finding) { t.Error(f) }))
	must.Do(t, store.Close())
	store.Visible()
	store.Tables()
	store.ReadOnly()
	store.Recovery()
	store.Poisoned()
	table.Name()
	table.Schema()
	table.Properties()
	table.Layout()
	closed.Close()
}

func mustSchema(t testing.TB, columns ...schema.Column) *schema.Schema {
	t.Helper()
	return must.Get(schema.New(columns, 1))(t)
}
