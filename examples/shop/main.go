// Command shop is the store of a web shop: users, orders, and the stock.
//
// Names and e-mail addresses are unique, orders are listed in pages forward and backward, and 16 goroutines
// sell what is left: never more.
//
//	go run ./examples/shop shop.oribi
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/oribi-db/oribi"
)

// User is a row of the table of users.
type User struct {
	ID   int64  `oribi:"id,key"`
	Name string `oribi:"name,unique"`
	Mail string `oribi:"mail,unique"`
}

// Item is what the shop sells.
type Item struct {
	Name  string        `oribi:"name,key"`
	Price oribi.Decimal `oribi:"price,decimal(18,2)"`
	Left  int64
}

// Order is an item that a user has bought.
type Order struct {
	ID    int64     `oribi:",auto"`
	User  int64     `oribi:"user,index=by_user"`
	Day   time.Time `oribi:"day,date,index=by_user"`
	Item  string
	Price oribi.Decimal `oribi:"price,decimal(18,2)"`
}

// Shop is safe for concurrent use.
type Shop struct {
	store  *oribi.Store
	users  *oribi.TableOf[User]
	items  *oribi.TableOf[Item]
	orders *oribi.TableOf[Order]
}

// Buy sells an item on a day to the user with an e-mail address. It returns false if none is left.
func (s *Shop) Buy(ctx context.Context, mail, name string, day time.Time) (bool, error) {
	user, err := s.users.GetBy(ctx, "by_mail", mail)
	item, itemErr := s.items.Get(ctx, name)
	if err = errors.Join(err, itemErr); err != nil {
		return false, err
	}
	b := s.store.NewBatch() // the stock and the order, or neither
	b.UpdateIf(s.items.Table, oribi.Row{"name": name, "left": oribi.Add(-1)}, oribi.Gt("left", 0))
	s.orders.InBatch(b).Insert(Order{User: user.ID, Day: day, Item: name, Price: item.Price})
	if _, err := b.Commit(ctx); !errors.Is(err, oribi.ErrConflict) {
		return err == nil, err
	}
	return false, nil
}

// Page returns the first n orders of a scan by user and day.
func (s *Shop) Page(ctx context.Context, n int64, opts ...oribi.ScanOption) (page []Order, err error) {
	for order, err := range s.orders.Scan(ctx, append(opts, oribi.OrderBy("by_user"), oribi.Limit(n))...) {
		if err != nil {
			return nil, err
		}
		page = append(page, order)
	}
	return page, nil
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: shop DIR")
	}
	ctx, store := context.Background(), must(oribi.Open(os.Args[1], nil))
	defer store.Close()
	s := &Shop{store, must(oribi.OpenTable[User](store, "users")), must(oribi.OpenTable[Item](store, "items")),
		must(oribi.OpenTable[Order](store, "orders"))}
	must(s.users.Insert(ctx, User{1, "Ada", "ada@example.org"}, User{2, "Bob", "bob@example.org"}))
	must(s.items.Insert(ctx, Item{Name: "lamp", Price: oribi.NewDecimal(1990, 2), Left: 100}))
	_, err := s.users.Insert(ctx, User{3, "Cyd", "bob@example.org"})
	fmt.Println("an address twice:", errors.Is(err, oribi.ErrNotUnique))

	var customers sync.WaitGroup
	for i := range 16 {
		customers.Go(func() {
			for n := range 10 {
				day := time.Date(2026, 3, 1+n, 0, 0, 0, 0, time.UTC)
				must(s.Buy(ctx, []string{"ada@example.org", "bob@example.org"}[i%2], "lamp", day))
			}
		})
	}
	customers.Wait()
	lamp := must(s.items.Get(ctx, "lamp"))
	fmt.Printf("wanted 160, sold %d, left %d\n", must(s.orders.Table.Count(ctx)), lamp.Left)

	place := func(o Order) oribi.Key { return oribi.Key{o.User, o.Day, o.ID} } // in the index
	ada := oribi.Where(oribi.Eq("user", 1))
	first := must(s.Page(ctx, 5, ada))
	second := must(s.Page(ctx, 5, ada, oribi.Above(place(first[4]))))
	back := must(s.Page(ctx, 5, ada, oribi.Below(place(second[0])), oribi.Desc()))
	slices.Reverse(back)
	fmt.Println("back on the first page:", slices.Equal(first, back), "of", len(back))
}
