import { h, UI } from "./h.js";

/**
 * A dense table. `columns`: `{name, title, end, width, cell(row)}`; `end` aligns numbers at the right.
 * It scrolls inside itself where the page is too narrow, never the page.
 */
export function Table({ columns, rows, id, label, onOpen }) {
  const head = h(
    UI.Table.Header,
    null,
    h(
      UI.Table.Row,
      { bg: "transparent" },
      ...columns.map((column) =>
        h(
          UI.Table.ColumnHeader,
          {
            key: column.name,
            textAlign: column.end ? "end" : "start",
            color: "fg.muted",
            fontSize: "xs",
            fontWeight: "semibold",
            whiteSpace: "nowrap",
            width: column.width,
          },
          column.title,
        ),
      ),
    ),
  );
  const body = h(
    UI.Table.Body,
    null,
    ...rows.map((item, index) =>
      h(
        UI.Table.Row,
        { key: id ? id(item) : index, bg: "transparent", ...(onOpen ? onOpen(item) : {}) },
        ...columns.map((column) =>
          h(
            UI.Table.Cell,
            {
              key: column.name,
              textAlign: column.end ? "end" : "start",
              fontVariantNumeric: column.end ? "tabular-nums" : undefined,
              whiteSpace: column.end ? "nowrap" : undefined,
              verticalAlign: "top",
              py: 1.5,
            },
            column.cell(item),
          ),
        ),
      ),
    ),
  );
  return h(
    UI.Table.ScrollArea,
    // Long names break before the table scrolls.
    { whiteSpace: "normal" },
    h(UI.Table.Root, { size: "sm", "aria-label": label, css: { "& tr:last-of-type > td": { borderBottom: 0 } } }, head, body),
  );
}
