// The host's own React, Chakra and router: nothing is bundled, so the pages look and behave like Airflow.
const { React, ChakraUI, ReactRouterDOM } = globalThis;

export const {
  createContext,
  Fragment,
  useCallback,
  useContext,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} = React;
export const UI = ChakraUI;
export const Router = ReactRouterDOM;

/** One element: `h(type, props, ...children)`. */
export const h = React.createElement;

/** A box in the host's style properties. */
export const box = (props, ...children) => h(UI.Box, props, ...children);

/** Children in a row, centred, wrapping where there is no room. */
export const row = (props, ...children) =>
  h(UI.Flex, { alignItems: "center", gap: 2, flexWrap: "wrap", ...props }, ...children);

/** Children below each other. */
export const column = (props, ...children) => h(UI.Flex, { direction: "column", gap: 3, ...props }, ...children);

/** A piece of text. */
export const text = (props, ...children) => h(UI.Text, { as: "span", ...props }, ...children);
