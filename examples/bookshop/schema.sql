create table books (id integer primary key, title text not null, price integer not null);
create table orders (
    id integer primary key,
    book integer not null references books,
    buyer text not null,
    state text not null default 'ordered'
);
insert into books (title, price) values ('Patience', 1200), ('The Waiting Room', 900);
